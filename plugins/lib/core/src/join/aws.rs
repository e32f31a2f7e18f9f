//! The IAM roles of a cluster that registers with an identity of AWS.

use ocm_api::operator::AwsIrsa;
use ocm_rules::aws;

/// The IAM roles of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// That of the agent, in the account of the managed cluster: somebody has to make it before the agent can register.
    pub managed: String,
    /// That with which the hub lets it in, in the account of the hub: the hub makes it when the cluster is accepted.
    pub hub: String,
    /// That with which the hub makes the other, in its account: somebody has to make it.
    pub creator: String,
}

impl Roles {
    /// Those of the two clusters; none where one of them is not named by its ARN. Upstream: `ManagedClusterIamRole` and
    /// `pkg/registration/register/aws_irsa`.
    pub fn of(clusters: &AwsIrsa) -> Option<Self> {
        let (hub_account, hub) = aws::cluster(&clusters.hub_cluster_arn)?;
        let (account, cluster) = aws::cluster(&clusters.managed_cluster_arn)?;
        let suffix = hex(&md5(format!("{hub_account}#{hub}#{account}#{cluster}").as_bytes()));
        Some(Self {
            managed: format!("arn:aws:iam::{account}:role/ocm-managed-cluster-{suffix}"),
            hub: format!("arn:aws:iam::{hub_account}:role/ocm-hub-{suffix}"),
            creator: format!("arn:aws:iam::{hub_account}:role/{hub}_managed-cluster-identity-creator"),
        })
    }
}

/// The account of an EKS cluster, from its ARN; none for any other text.
pub fn account(arn: &str) -> Option<&str> {
    aws::cluster(arn).map(|(account, _)| account)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How far each of four steps rotates, round by round. RFC 1321, section 3.4.
const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The MD5 digest, by which Open Cluster Management names roles. It protects nothing. RFC 1321, section 3.
fn md5(message: &[u8]) -> [u8; 16] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64).wrapping_mul(8).to_le_bytes());
    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded.chunks_exact(64) {
        let words: Vec<u32> = block
            .chunks_exact(4)
            .map(|word| word.iter().rev().fold(0, |number, byte| (number << 8) | u32::from(*byte)))
            .collect();
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), 5 * step + 1),
                2 => (b ^ c ^ d, 3 * step + 5),
                _ => (c ^ (b | !d), 7 * step),
            };
            let sum = a.wrapping_add(mixed).wrapping_add(sine(step)).wrapping_add(words[word % 16]);
            let rotated = sum.rotate_left(ROTATIONS[step / 16][step % 4]);
            (a, d, c, b) = (d, c, b, b.wrapping_add(rotated));
        }
        for (part, more) in state.iter_mut().zip([a, b, c, d]) {
            *part = part.wrapping_add(more);
        }
    }
    let mut digest = [0; 16];
    for (bytes, part) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&part.to_le_bytes());
    }
    digest
}

/// The constant of a step: the integer part of 2³² times the sine of its number. RFC 1321, section 3.4.
fn sine(step: usize) -> u32 {
    (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        // RFC 1321, appendix A.5.
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(hex(&md5(text.as_bytes())), digest, "{text}");
        }
    }

    #[test]
    fn roles_are_named_as_the_operator_names_them() {
        let arn = |name: &str| format!("arn:aws:eks:us-west-2:123456789012:cluster/{name}");
        let clusters = AwsIrsa { hub_cluster_arn: arn("hub-cluster1"), managed_cluster_arn: arn("managed-cluster1") };
        let roles = Roles::of(&clusters).unwrap();
        // The digest that upstream's own tests have for these two clusters.
        let suffix = "7f8141296c75f2871e3d030f85c35692";
        assert_eq!(roles.managed, format!("arn:aws:iam::123456789012:role/ocm-managed-cluster-{suffix}"));
        assert_eq!(roles.hub, format!("arn:aws:iam::123456789012:role/ocm-hub-{suffix}"));
        assert_eq!(roles.creator, "arn:aws:iam::123456789012:role/hub-cluster1_managed-cluster-identity-creator");
        let unnamed = AwsIrsa { hub_cluster_arn: "hub".to_owned(), ..clusters };
        assert_eq!(Roles::of(&unnamed), None);
    }
}
