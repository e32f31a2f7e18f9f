//! Shell completion: the scripts for shells, and the answers that these and kubectl ask for. Words behind a verb are
//! answered by the binary of the verb, which knows its own flags.

mod answer;
mod scripts;

pub(crate) use answer::{WORD, answer, called_by_kubectl};
pub(crate) use scripts::{ABOUT, main};
