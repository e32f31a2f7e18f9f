//! The policies in force: from what administrators want to places in the registry.

mod answered;
mod changes;
mod compare;
mod counting;
mod decisions;
mod evaluation;
mod follow;
mod in_force;
mod let_in;
mod loader;
mod module;
mod source;
mod state;
pub mod store;
mod wanted;

pub(crate) use self::counting::Counting;
pub use self::decisions::Decisions;
pub use self::follow::follow;
pub use self::in_force::Policies;
pub use self::let_in::Objection;
pub(crate) use self::let_in::{beside, is_accepted_at_once};
pub use self::source::{Key, OfPolicy, Source};
pub use self::state::{CandidateState, State, With};
pub use self::wanted::{Candidate, Wanted};
