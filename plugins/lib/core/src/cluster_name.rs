//! Names of managed clusters, as people type them.

use crate::Failure;
use crate::name::{Unfit, is_dns_label, unfit};

/// What names of managed clusters are, and of all else that is named by a DNS label.
pub const FORM: &str = "names are lower-case letters, digits and '-', 63 characters at most";

/// Why a text cannot be the name of a managed cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot be the name of a managed cluster")]
pub struct NameError {
    name: String,
    why: Unfit,
}

impl NameError {
    /// What lies behind it, if the form of the name does not say it all.
    pub const fn cause(&self) -> Option<&'static str> {
        match self.why {
            Unfit::Form => None,
            Unfit::Reserved => Some("the hub or Kubernetes uses this name itself"),
            Unfit::Addon(_) => Some("certificates of the add-on of this name would have the rights of the cluster"),
        }
    }

    /// What to write in its place, if there is one answer.
    pub const fn hint(&self) -> Option<&'static str> {
        match self.why {
            Unfit::Form => Some(FORM),
            Unfit::Reserved | Unfit::Addon(_) => None,
        }
    }

    /// The same as what a command ends with.
    pub fn failure(self) -> Failure {
        let failure = self.cause().into_iter().fold(Failure::usage(self.to_string()), Failure::because);
        self.hint().into_iter().fold(failure, Failure::hint)
    }
}

/// Refuses what no managed cluster can be called: of clusters that are looked up.
///
/// # Errors
/// Where the text is no DNS label. A reserved name finds no cluster, and whoever asks for it hears so.
pub fn check_known(name: &str) -> Result<(), NameError> {
    match is_dns_label(name) {
        true => Ok(()),
        false => Err(NameError { name: name.to_owned(), why: Unfit::Form }),
    }
}

/// Refuses what no cluster may register as: of clusters that come to be.
///
/// # Errors
/// Where the text is no DNS label, a name that the hub uses itself, or one whose group an add-on has.
pub fn check_new(name: &str) -> Result<(), NameError> {
    match unfit(name) {
        None => Ok(()),
        Some(why) => Err(NameError { name: name.to_owned(), why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hint, Reason};

    #[test]
    fn a_name_that_no_cluster_can_have_is_told_with_what_names_are() {
        for check in [check_known, check_new] {
            assert_eq!(check("c1"), Ok(()));
            let failure = check("C_1").unwrap_err().failure();
            assert_eq!((failure.reason, failure.hints), (Reason::Usage, vec![Hint::from(FORM)]));
            assert_eq!(failure.message, "\"C_1\" cannot be the name of a managed cluster");
        }
    }

    #[test]
    fn a_name_of_the_hubs_own_or_of_an_add_ons_is_looked_up_and_not_given() {
        for name in ["kube-system", "cluster-proxy"] {
            assert_eq!(check_known(name), Ok(()));
            let failure = check_new(name).unwrap_err().failure();
            assert!(failure.causes.len() == 1 && failure.hints.is_empty(), "{failure}");
            assert_eq!(failure.message, format!("{name:?} cannot be the name of a managed cluster"));
        }
    }
}
