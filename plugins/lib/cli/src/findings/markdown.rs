//! Findings for an issue or a chat.

use ocm_checks::finding::{Finding, Next};
use ocm_checks::page;

use crate::clean;

/// A finding under a heading of its own; `of` tells in Markdown which clusters have it, `line` what is
/// typed next.
pub fn finding(finding: &Finding, of: Option<String>, line: &dyn Fn(&Next) -> String) -> String {
    let mut text = format!("### {} {}: {}\n\n", finding.id, page::severity(finding.severity), code(&finding.summary));
    if let Some(of) = of {
        text += &format!("{of}\n\n");
    }
    for line in &finding.evidence {
        text += &format!("- {}\n", code(line));
    }
    if !finding.cause.is_empty() {
        text += &format!("\nBecause {}.\n", code(&finding.cause));
    }
    let (commands, hints): (Vec<&Next>, Vec<&Next>) =
        finding.next.iter().partition(|next| matches!(next, Next::Command { .. }));
    if !commands.is_empty() {
        let commands: Vec<String> = commands.into_iter().map(line).collect();
        text += &format!("\n{}", block(&commands));
    }
    if !hints.is_empty() {
        text.push('\n');
    }
    for hint in hints {
        text += &format!("- hint: {}\n", code(&line(hint)));
    }
    text.push('\n');
    text
}

/// The most backticks that stand side by side in a text.
fn backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

/// A text as code within a line of Markdown: what clusters say becomes no markup, and nothing of it is altered that can be
/// seen.
pub fn code(text: &str) -> String {
    let text = clean(text);
    // As Markdown has it: more backticks around than within, and a blank between those and its own.
    let ticks = "`".repeat(backticks(&text) + 1);
    let is_padded = text.is_empty() || text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']);
    let blank = if is_padded { " " } else { "" };
    format!("{ticks}{blank}{text}{blank}{ticks}")
}

/// A text as code within a table, where a bar would end its cell.
pub fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Commands as a block of Markdown, each as it is pasted.
fn block(commands: &[String]) -> String {
    let lines: Vec<String> = commands.iter().map(|line| clean(line)).collect();
    let most = lines.iter().map(|line| backticks(line)).max().unwrap_or_default();
    let fence = "`".repeat((most + 1).max(3));
    format!("{fence}text\n{}\n{fence}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_ends_where_its_text_ends() {
        for (text, wanted) in [("a", "`a`"), ("a`b", "``a`b``"), ("```a", "```` ```a ````"), (" a ", "`  a  `")] {
            assert_eq!(code(text), wanted);
        }
        assert_eq!(cell("a|b"), "`a\\|b`");
        assert_eq!(block(&["a".to_owned()]), "```text\na\n```\n");
        assert_eq!(block(&["```".to_owned(), "a".to_owned()]), "````text\n```\na\n````\n");
    }
}
