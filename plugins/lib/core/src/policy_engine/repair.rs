//! What is written on the hub beside what is wrong with its policy engine.

/// What makes what is missing, as the end of a sentence. Conditions and logs hold it, which no command words for whoever reads
/// them.
pub const REPAIR: &str = "kubectl ocm install policy-engine --wait puts it right";
