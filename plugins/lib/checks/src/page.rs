//! The pages of checks, as Markdown: the registry is what they are made of.

use crate::finding::Severity;
use crate::fix;
use crate::registry::{Category, Check, check, checks};

/// What a severity is called.
pub const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// The page of a check.
pub fn page(of: &Check) -> String {
    let Check { id, slug, title, category, severity: at_most, after, page, .. } = of;
    let mut text = format!("# {id} {slug}\n\n");
    text += &format!("Checks that {title}. Category: {}. At most: {}.\n", category.title(), severity(*at_most));
    for (heading, paragraph) in [
        ("What it means", page.means),
        ("How it happens", page.happens),
        ("What to do", page.mend),
        ("How to see that it is mended", page.mended),
    ] {
        text += &format!("\n## {heading}\n\n{paragraph}\n");
    }
    if let Some(fixable) = fix::of(*id) {
        text += &format!(
            "\n## What --fix does\n\nIt can be mended by `kubectl ocm troubleshoot --fix={id}`, which {}. \
             [More about --fix](../commands/troubleshoot.md#mending).\n",
            fixable.does
        );
    }
    let causes: Vec<String> = after.iter().copied().filter_map(check).map(link).collect();
    if !causes.is_empty() {
        text += &format!(
            "\n## What explains it\n\nIt is listed as a consequence where one of these was found: {}.\n",
            causes.join(", ")
        );
    }
    text
}

fn link(check: &Check) -> String {
    format!("[{}]({}.md)", check.id, check.id)
}

/// The list of all pages.
pub fn index() -> String {
    let mut text = "# Checks\n\nWhat `kubectl ocm troubleshoot` checks and, under OCM4xxx, `kubectl ocm tls-check`. `troubleshoot --list` \
                    prints the table, `troubleshoot --explain ID` a page. The meaning of an id never changes.\n\n\
                    [What is checked, failure by failure](coverage.md).\n"
        .to_owned();
    for category in Category::ALL {
        let mut of = checks().filter(|check| check.category == category).peekable();
        if of.peek().is_none() {
            continue;
        }
        text +=
            &format!("\n## {}\n\n| id | what is so when all is well | at most |\n|---|---|---|\n", category.title());
        for check in of {
            text += &format!("| {} | {} | {} |\n", link(check), check.title, severity(check.severity));
        }
    }
    text
}
