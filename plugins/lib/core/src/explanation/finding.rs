//! The answer in one word.

/// Where the registration of a cluster stands, and who brought it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Policies let it in.
    LetIn {
        /// Which.
        policies: Vec<String>,
        /// When that was decided, in RFC 3339.
        at: Option<String>,
    },
    /// It is accepted, and no policy let it in.
    Accepted {
        /// Whether what the policies said of it could be read; otherwise one of them may have let it in.
        is_certain: bool,
    },
    /// It is accepted, and its certificate request waits.
    RequestWaits {
        /// For what, in the words of the controller.
        why: String,
    },
    /// Policies let it in, and the controller is about to carry that out.
    BeingLetIn {
        /// Which.
        policies: Vec<String>,
        /// Since when, in RFC 3339.
        since: String,
    },
    /// It is kept out for now.
    Waits {
        /// For what, in the words of the controller.
        why: String,
    },
    /// Policies deny it.
    Denied {
        /// Which and why, in the words of the controller.
        why: String,
    },
    /// The hub does not accept it any more, or a person said that it shall not.
    NotAccepted,
    /// Its acceptance was withdrawn, because policies gave it for a time that is over.
    Expired {
        /// When it was over, in RFC 3339.
        at: String,
        /// Which policies gave no more time.
        policies: Vec<String>,
        /// Why, in the words of the first one.
        reason: Option<String>,
    },
    /// It is being removed from the hub.
    Detaching,
    /// Its agent has not asked for a certificate.
    NoRequest,
    /// Nothing has been decided about it, though there is a policy engine.
    NotDecided,
    /// Nobody but a person decides on this hub: it has no policy engine.
    NoPolicyEngine,
    /// The hub has no such cluster any more.
    Removed {
        /// Since when, in RFC 3339; none: the controller has not seen it yet.
        at: Option<String>,
        /// Until when its certificates may be valid, in RFC 3339: so long nobody but a person gives the name to another
        /// cluster.
        until: Option<String>,
    },
    /// What would tell could not be read.
    Unknown,
}

impl Finding {
    /// The stable word for programs.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::LetIn { .. } => "LetIn",
            Self::Accepted { .. } => "Accepted",
            Self::RequestWaits { .. } => "RequestWaits",
            Self::BeingLetIn { .. } => "BeingLetIn",
            Self::Waits { .. } => "Waits",
            Self::Denied { .. } => "Denied",
            Self::NotAccepted => "NotAccepted",
            Self::Expired { .. } => "Expired",
            Self::Detaching => "Detaching",
            Self::NoRequest => "NoRequest",
            Self::NotDecided => "NotDecided",
            Self::NoPolicyEngine => "NoPolicyEngine",
            Self::Removed { .. } => "Removed",
            Self::Unknown => "Unknown",
        }
    }
}
