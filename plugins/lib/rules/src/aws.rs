//! Clusters that register with an AWS identity instead of a certificate.

use crate::code::Quoted;
use crate::{Code, Violation};

/// Annotation of a ManagedCluster: the ARN of the EKS cluster.
pub const CLUSTER_ARN: &str = "agent.open-cluster-management.io/managed-cluster-arn";
/// Annotation of a ManagedCluster: the end of the names of its IAM roles, an MD5 digest.
pub const ROLE_SUFFIX: &str = "agent.open-cluster-management.io/managed-cluster-iam-role-suffix";

/// The ARN that a cluster registers with, from its two annotations; none if it has neither.
pub fn identity<'a>(arn: Option<&'a str>, suffix: Option<&str>) -> Option<Result<&'a str, Violation>> {
    let wrong = |detail: String| Some(Err(Violation::new(Code::AwsIdentity, "metadata.annotations", detail)));
    match (arn, suffix) {
        (None, None) => None,
        (Some(arn), _) if !is_cluster_arn(arn) => wrong(format!("{} is no ARN of an EKS cluster", Quoted(arn))),
        (Some(_), Some(suffix)) if !is_digest(suffix) => {
            wrong(format!("the suffix of its IAM roles {} is no MD5 digest", Quoted(suffix)))
        }
        (Some(arn), Some(_)) => Some(Ok(arn)),
        (Some(_), None) => wrong("it names an ARN but no suffix of its IAM roles".to_owned()),
        (None, Some(_)) => wrong("it names the suffix of its IAM roles but no ARN".to_owned()),
    }
}

/// Whether a text is the ARN of an EKS cluster.
fn is_cluster_arn(arn: &str) -> bool {
    cluster(arn).is_some()
}

/// Account and name of an EKS cluster, from its ARN `arn:aws:eks:<region>:<12 digits>:cluster/<name>`, as the schema of
/// ClusterManagers has it; none for any other text.
pub fn cluster(arn: &str) -> Option<(&str, &str)> {
    let name = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let (region, rest) = arn.strip_prefix("arn:aws:eks:")?.split_once(':')?;
    let (account, cluster) = rest.split_once(':')?;
    let cluster = cluster.strip_prefix("cluster/")?;
    let digits = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
    (name(region) && digits && name(cluster)).then_some((account, cluster))
}

fn is_digest(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:eks:us-west-2:123456789012:cluster/managed-cluster1";
    const SUFFIX: &str = "7f8141296c75f2871e3d030f85c35692";

    #[test]
    fn an_arn_names_account_and_cluster() {
        assert_eq!(cluster(ARN), Some(("123456789012", "managed-cluster1")));
        assert_eq!(cluster("arn:aws:iam::123456789012:role/c"), None);
    }

    #[test]
    fn identities_are_whole_or_refused() {
        assert_eq!(identity(None, None), None);
        assert_eq!(identity(Some(ARN), Some(SUFFIX)), Some(Ok(ARN)));
        for (arn, suffix) in [
            (Some(ARN), None),
            (None, Some(SUFFIX)),
            (Some("arn:aws:eks:us-west-2:12345678901:cluster/c"), Some(SUFFIX)),
            (Some("arn:aws:iam::123456789012:role/c"), Some(SUFFIX)),
            (Some("arn:aws:eks:us-west-2:123456789012:cluster/"), Some(SUFFIX)),
            (Some("arn:aws:eks:us-west-2:123456789012:cluster/a/b"), Some(SUFFIX)),
            (Some(ARN), Some("x")),
        ] {
            assert!(matches!(identity(arn, suffix), Some(Err(_))), "{arn:?} {suffix:?}");
        }
    }
}
