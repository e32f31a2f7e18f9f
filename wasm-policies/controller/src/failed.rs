//! Why something was not written to the hub.

use ocm_core::Reason;

/// Why something was not written.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// This process is not the one that acts.
    #[error("another controller acts")]
    NotLeading,
    /// What was judged is not what is there.
    #[error("it changed in the meantime")]
    Changed,
    /// Nobody knows what became of it.
    #[error("the hub has not answered in time")]
    Late,
    /// The hub has it, and what this process watches does not show it yet.
    #[error("what was written has not been seen in time")]
    Unseen,
    /// The hub said no.
    #[error("the hub refused it: {0}")]
    Refused(String),
    /// This process may not do it, or admission refuses it.
    #[error("the hub refused it: {0}")]
    Forbidden(String),
    /// The hub finds it wrong, or what a patch says of the object does not hold.
    #[error("the hub finds it invalid: {0}")]
    Invalid(String),
}

/// What an error of a request comes to.
pub(crate) fn failed(error: &kube::Error) -> Failed {
    if ocm_kube::may_be_done(error) {
        return Failed::Late;
    }
    let failure = ocm_kube::explain(error);
    let why = failure.to_string();
    match failure.reason {
        Reason::NotFound | Reason::KindNotServed | Reason::Conflict => Failed::Changed,
        // What admission refuses stays refused until somebody changes the hub, whichever code it chooses.
        Reason::Forbidden | Reason::Admission => Failed::Forbidden(why),
        Reason::Invalid => Failed::Invalid(why),
        _ => Failed::Refused(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_hub_finds_wrong_is_told_and_not_tried_as_if_something_had_changed() {
        let status = |code: u16, message: &str| {
            kube::Error::Api(Box::new(kube::core::Status::failure(message, "Invalid").with_code(code)))
        };
        assert!(
            matches!(failed(&status(422, "status.kind: too long")), Failed::Invalid(why) if why.contains("too long"))
        );
        assert!(matches!(failed(&status(409, "conflict")), Failed::Changed));
        assert!(matches!(failed(&status(404, "gone")), Failed::Changed));
        assert!(matches!(failed(&status(403, "no")), Failed::Forbidden(_)));
        let by_policy = "m is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no";
        assert!(matches!(failed(&status(422, by_policy)), Failed::Forbidden(_)), "to look anew does not help");
        assert!(matches!(failed(&status(409, "admission webhook \"w\" denied the request: no")), Failed::Forbidden(_)));
        assert!(matches!(failed(&status(500, "no")), Failed::Refused(_)));
        assert!(matches!(failed(&status(503, "later")), Failed::Late), "it may have been carried out");
        let broken = kube::Error::Service(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into());
        assert!(matches!(failed(&broken), Failed::Late));
    }
}
