//! What admission says of an object, and who in the API server says it.

/// Who says something of an object before it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A webhook, by the name of its entry in the configuration.
    Webhook(String),
    /// A ValidatingAdmissionPolicy, by its name.
    Policy(String),
    /// Somebody whom the API server does not name.
    Other,
}

/// Why an object is refused, or what is wrong with it though it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// Who says it.
    pub by: Admission,
    /// What they say, without the words of the API server about who they are.
    pub why: String,
    /// What a webhook gives as reasons of the causes in its status, which the API server hands on: words for programs.
    pub codes: Vec<String>,
}
