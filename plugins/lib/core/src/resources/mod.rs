//! CPU and memory of the pods of a hub or an agent: what was typed, as their operator takes it.

mod quantity;
mod requirement;

pub use requirement::{AmountList, Amounts, ResourcesError, requirement};
