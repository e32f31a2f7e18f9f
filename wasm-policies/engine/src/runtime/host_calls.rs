//! What a guest may ask its host by name, and what it logs.

use ocm_policy_rules::PolicyError;

/// What a guest says that does not decide: the beginning is kept for the case that it fails.
#[derive(Default)]
pub(crate) struct GuestLog(Vec<u8>);

impl GuestLog {
    const MOST: usize = 512;

    pub(crate) fn record(&mut self, bytes: &[u8]) {
        let room = Self::MOST.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Adds to a trap what the guest said before.
    pub(crate) fn explain(&self, error: PolicyError) -> PolicyError {
        let text = String::from_utf8_lossy(&self.0);
        let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        match error {
            PolicyError::Trap(trap) if !text.trim().is_empty() => {
                PolicyError::Trap(format!("{trap}; it said: {}", text.trim()))
            }
            other => other,
        }
    }
}

/// What a guest may ask its host by name, `<namespace>/<operation>`. The hub grants nothing yet; a grant would stand
/// in [`HostCalls::answer`] beside logging, given to the store with the limits.
#[derive(Default)]
pub(crate) struct HostCalls {
    /// The first call that was denied.
    denied: Option<String>,
}

impl HostCalls {
    /// What a call returns, or why it is denied.
    pub(crate) fn answer(&mut self, namespace: &str, operation: &str) -> Result<Vec<u8>, String> {
        match (namespace, operation) {
            ("tracing", "log") => Ok(Vec::new()),
            _ => {
                let shown =
                    |text: &str| text.chars().filter(|letter| !letter.is_control()).take(64).collect::<String>();
                let name = format!("{}/{}", shown(namespace), shown(operation));
                let why = format!("the host call {name} is not granted");
                self.denied.get_or_insert(name);
                Err(why)
            }
        }
    }

    /// A policy that could not ask must not be understood as if it had been told something, whatever it answers.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        self.denied.clone().map_or(Ok(()), |name| Err(PolicyError::HostCall(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_logging_is_granted_and_a_denial_is_remembered() {
        let mut calls = HostCalls::default();
        assert_eq!(calls.answer("tracing", "log"), Ok(Vec::new()));
        assert_eq!(calls.check(), Ok(()));
        assert!(calls.answer("kubernetes", "can_i").is_err());
        assert!(calls.answer("net", "v1/dns_lookup_host").is_err());
        assert_eq!(calls.check(), Err(PolicyError::HostCall("kubernetes/can_i".to_owned())));
    }

    #[test]
    fn what_was_said_explains_a_trap_and_nothing_else() {
        let mut log = GuestLog::default();
        log.record(b"panicked at x\n");
        log.record(&[b'y'; 10_000]);
        let PolicyError::Trap(text) = log.explain(PolicyError::Trap("unreachable".to_owned())) else {
            panic!("no trap")
        };
        assert!(text.starts_with("unreachable; it said: panicked at x ") && text.len() < 600, "{text}");
        assert_eq!(log.explain(PolicyError::OutOfFuel), PolicyError::OutOfFuel);
    }
}
