//! Why something is refused, as stable words.

use std::fmt;

macro_rules! codes {
    ($($name:ident $rule:literal $doc:literal)*) => {
        /// Why something is refused. The word is stable: scripts, policies and records carry it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $doc] $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word, for example `CommonName`.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// What the code means, as one sentence.
            pub const fn doc(self) -> &'static str {
                match self {
                    $(Self::$name => $doc,)*
                }
            }

            /// The rule that it belongs to: `R1` to `R8` are about certificate requests, `M1` to `M8` about managed
            /// clusters, `A1` about approvals by people; `-` stands for what is missing to judge at all.
            pub const fn rule(self) -> &'static str {
                match self {
                    $(Self::$name => $rule,)*
                }
            }
        }
    };
}

codes! {
    Unreadable "R1" "The certificate request cannot be read."
    ClusterLabel "R1" "The label names no cluster, or another one than the common name."
    AddonLabel "R1" "The request has the label of an add-on but asks for the name of a cluster's agent."
    CommonNames "R1" "There is not exactly one common name."
    CommonName "R1" "The common name is not that of an agent of this cluster or add-on."
    ForeignOrganization "R2" "An organization is asked for that is not this cluster's or add-on's."
    MissingOrganization "R2" "The cluster's own organization is missing."
    SubjectAttributes "R2" "The subject has attributes besides common name and organizations."
    Signer "R3" "Another signer is asked than the one for this requester."
    Usages "R3" "Other usages are asked for than those of a client certificate."
    GrpcClaim "R4" "It claims to come from the hub's gRPC server, or that server does not name who asks."
    AlternativeNames "R5" "Subject alternative names are asked for."
    Extensions "R5" "Other extensions or attributes are asked for."
    Lifetime "R5" "A longer lifetime is asked for than allowed; without one, the signer's default counts."
    WeakKey "R5" "The key is too weak or of a kind that cannot be verified."
    Signature "R5" "The request is not signed with its own key."
    Requester "R6" "The requester may not ask for this certificate."
    Impersonated "R6" "The requester has the name of a service account or a bootstrap token but not its credentials."
    OtherAgent "R7" "An agent asks for another name than its own."
    AddonNotEnabled "R2" "The add-on is not enabled for this cluster."
    NoManagedCluster "R6" "The hub has no managed cluster of this name."
    Detaching "R6" "The cluster is being removed from the hub."
    DeniedBefore "R6" "The cluster was denied before."
    TwoKeys "R6" "Requests with different keys wait for the same name."
    NameTaken "R6" "Another key holds the name."
    CredentialUnknown "R6" "Nobody knows which credential registered the cluster."
    OtherCredential "R6" "Another credential registered the cluster."
    NameUsedBefore "R8" "A cluster of this name was here before, and its certificates may still be valid."
    NoSuchKey "R6" "No pending request has the key that was named."
    KeyChanged "R6" "Another key asks than the one that was shown."
    NotSelected "R6" "The labels of the cluster do not match the selector any more that has chosen it."
    RequestDenied "R6" "The request was denied before."
    RequestFailed "R6" "The request was approved, but its signer failed."
    AwsIdentity "R6" "The cluster registers with an AWS identity that is incomplete or inconsistent."
    NameForm "M1" "The name is not a DNS label."
    NameReserved "M1" "The hub or one of its add-ons uses the name itself."
    NamespaceTaken "M1" "A namespace of this name belongs to something else: the agent would get rights there."
    LeaseDuration "M2" "The lease duration is too short or too long, or was changed."
    ClusterSet "M2" "The cluster chooses its set."
    Labels "M2" "There are labels that may not be set here, or labels were changed."
    Annotations "M2" "There are annotations that may not be set here, or annotations were changed."
    Taints "M2" "There are taints that may not be set here, or taints were changed."
    Finalizers "M2" "There are finalizers that may not be set here, or finalizers were changed."
    OwnerReferences "M2" "There are owner references that may not be set here, or owner references were changed."
    AcceptedAtCreation "M2" "The cluster is created as accepted already."
    HubAcceptsClient "M4" "The acceptance of the cluster was changed."
    ClientConfigs "M4" "How the hub reaches the cluster was changed."
    OtherFields "M4" "Fields were changed that are not the agent's."
    OtherCluster "M4" "An agent writes to another cluster."
    ManifestWork "M7" "More of a ManifestWork was changed than its finalizers."
    Approver "A1" "An approval names somebody else than its author as the approver."
    ApproverGroups "A1" "An approval names groups that its author is not in."
    ApprovalRight "A1" "The author of an approval has no right to approve the registration."
    ApprovalExpiry "A1" "An approval has ended when it is given, or would count for too long."
    SeveralRequesters "A1" "An approval with breakGlass is for one requester, and another one was given a certificate of the name."
    RequestMissing "-" "There is no certificate request to judge."
    ClusterMissing "-" "There is no managed cluster to judge."
    PreviousMissing "-" "There is nothing to compare the change with."
    EvidenceIncomplete "-" "What the hub holds could not be read completely."
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub code: Code,
    /// The field of the object that breaks it, for example `spec.signerName`; empty where it is no one field.
    pub field: &'static str,
    /// What was found, for people.
    pub detail: String,
}

impl Violation {
    /// A broken rule.
    pub fn new(code: Code, field: &'static str, detail: impl Into<String>) -> Self {
        Self { code, field, detail: detail.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

/// How much of a text that others wrote is repeated.
const SHOWN: usize = 200;

/// A text that others wrote, quoted, escaped and not too long.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// A sentence or a name that may hold what others wrote: escaped and not too long, without quotation marks.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for letter in self.0.chars().take(SHOWN) {
            match letter {
                '"' | '\'' | '\\' => f.write_char(letter)?,
                _ => write!(f, "{}", letter.escape_debug())?,
            }
        }
        f.write_str(if self.0.chars().nth(SHOWN).is_some() { "…" } else { "" })
    }
}

/// Several such texts; how many there are is said where not all are shown.
pub(crate) fn quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    use fmt::Write as _;
    const MOST: usize = 5;
    let (mut all, mut count) = (String::new(), 0_usize);
    for text in texts {
        count += 1;
        if count <= MOST {
            // Writing to a string cannot fail.
            let _ = write!(all, "{}{}", if count > 1 { ", " } else { "" }, Quoted(text));
        }
    }
    if count > MOST {
        let _ = write!(all, " and {} more", count - MOST);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_documented() {
        let mut words: Vec<&str> = Code::ALL.iter().map(|code| code.word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|code| code.doc().ends_with('.')));
        assert_eq!(format!("{:>12}", Code::Signer), "      Signer");
    }

    #[test]
    fn long_texts_are_cut_and_odd_ones_escaped() {
        assert_eq!(Quoted("a\u{202e}b").to_string(), "\"a\\u{202e}b\"");
        assert!(Quoted(&"ä".repeat(1000)).to_string().ends_with("\"…"));
        assert_eq!(Escaped("it's \"a\"\n\u{feff}ä").to_string(), "it's \"a\"\\n\\u{feff}ä");
        assert_eq!(Escaped(&"ä".repeat(1000)).to_string().chars().count(), SHOWN + 1);
        assert_eq!(quoted(["1", "2", "3", "4", "5", "6", "7"]), r#""1", "2", "3", "4", "5" and 2 more"#);
    }
}
