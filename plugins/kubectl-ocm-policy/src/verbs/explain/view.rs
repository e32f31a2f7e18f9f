//! An explanation in every format.

use ocm_cli::explanation::{details, opinions, sentence, whole};
use ocm_cli::{Format, Ui, clean, document, words};
use ocm_core::Failure;
use ocm_core::explanation::Explanation;

/// Where an explanation is shown.
pub(crate) struct View<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) format: Format,
}

impl View<'_> {
    pub(crate) fn show(&self, explanation: &Explanation) -> Result<(), Failure> {
        match self.format {
            Format::Json | Format::Yaml => self.ui.out(&document(self.format, &whole(explanation))?),
            Format::Name => {
                for opinion in explanation.opinions.iter().filter(|opinion| opinion.decides) {
                    self.ui.line(&format!("hubpolicy.policy.kubectl-ocm.dev/{}", opinion.policy));
                }
            }
            format => self.ui.out(&shown(explanation, format == Format::Wide)),
        }
        Ok(())
    }
}

fn shown(explanation: &Explanation, wide: bool) -> String {
    let mut text = clean(&sentence(explanation)) + "\n";
    for hint in &explanation.next {
        text += &format!("  next: {}\n", clean(&words(hint)));
    }
    if let Some(table) = opinions(explanation, wide) {
        text += &format!("\n{table}");
    }
    let details = details(explanation, true);
    if !details.is_empty() {
        text += &format!("\n{details}");
    }
    text
}
