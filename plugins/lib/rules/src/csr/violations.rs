//! What is wrong with a certificate request in the same words whoever finds it: which cluster it is about, and the rules.

use super::facts::{Content, Csr, Unreadable, texts};
use super::field::{LABELS, REQUEST};
use crate::code::{Escaped, Quoted, quoted};
use crate::{Code, Violation};

pub(super) fn no_addon_label_violation() -> Violation {
    Violation::new(Code::AddonLabel, LABELS, "no label names the add-on")
}

pub(super) fn addon_label_violation(label: &str) -> Violation {
    let detail =
        format!("it does not ask for an add-on's name and groups, but its label names the add-on {}", Quoted(label));
    Violation::new(Code::AddonLabel, LABELS, detail)
}

impl<S: AsRef<str>> Csr<'_, S> {
    pub(super) fn cluster_label_violation(&self) -> Violation {
        let detail = match self.cluster_label {
            Some(label) => format!("the label names the cluster {}", Quoted(label)),
            None => "no label names the cluster".to_owned(),
        };
        Violation::new(Code::ClusterLabel, LABELS, detail)
    }
}

impl<S> Unreadable<'_, S> {
    pub(super) fn violation(&self) -> Violation {
        let why = if self.why.is_empty() { "it cannot be read" } else { self.why };
        Violation::new(Code::Unreadable, REQUEST, Escaped(why).to_string())
    }
}

impl<S: AsRef<str>> Content<'_, S> {
    pub(super) fn common_names_violation(&self) -> Violation {
        let count = self.common_names.len();
        let detail = format!("{count} common names: {}", quoted(texts(self.common_names)));
        Violation::new(Code::CommonNames, REQUEST, detail)
    }
}
