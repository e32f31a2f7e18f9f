//! What is generated and checked in.

use std::fs;

use cli_tests::docs;

/// Writes the help of today into the pages of the commands, and the pages of checks.
///
/// # Errors
/// When a page cannot be written.
pub fn run() -> Result<(), String> {
    for page in docs::pages().into_iter().chain(docs::check_pages()) {
        if page.is == page.should_be {
            continue;
        }
        let shown = page.file.strip_prefix(cli_tests::root()).unwrap_or(&page.file).display().to_string();
        if let Some(folder) = page.file.parent() {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        fs::write(&page.file, &page.should_be).map_err(|error| format!("{shown}: {error}"))?;
        println!("wrote {shown}");
    }
    Ok(())
}
