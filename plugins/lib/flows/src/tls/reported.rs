//! What answers at the addresses that agents reported of the API servers of their clusters.

use ocm_checks::tls::{Copied, Copy, Inventory, is_foreign};
use ocm_net::{Endpoint, VERSIONS, Way, present_by};

use crate::observe::tls::HANDSHAKE;

/// How many addresses are dialled: agents report any number of them.
const MOST: usize = 8;

/// Notes whether what an agent reported vouches for what answers at the address that it reported, as a load balancer with a
/// certificate of its own does. Nothing but a handshake is sent, and only to an address of a cluster that was looked at, if
/// nothing that the cluster publishes explains what was reported.
pub async fn reported(inventory: &mut Inventory) {
    let answers = asked(&inventory.copies).into_iter().map(async |(index, endpoint, authorities)| {
        let answer = present_by(&endpoint, &Way::Remote, &VERSIONS, &authorities, HANDSHAKE).await.ok();
        (index, answer.map(|presented| presented.verify(&authorities).is_ok()))
    });
    for (index, vouches) in futures::future::join_all(answers).await {
        if let Some(copy) = inventory.copies.get_mut(index) {
            copy.vouches = vouches;
        }
    }
}

/// Which copies are to be asked about, where, and by which authorities.
fn asked(copies: &[Copy]) -> Vec<(usize, Endpoint, Vec<Vec<u8>>)> {
    let own: Vec<&Copy> = copies.iter().filter(|copy| copy.what == Copied::OwnApi).collect();
    let strange = copies.iter().enumerate().filter(|(_, copy)| own.iter().any(|own| is_foreign(copy, own)));
    let dialled = strange.filter_map(|(index, copy)| {
        let endpoint = Endpoint::parse(copy.server.as_deref()?, None).ok()?;
        let authorities: Vec<Vec<u8>> = copy.authorities.iter().map(|der| der.0.clone()).collect();
        // Whoever reported it may not choose what is dialled on this machine; nor do names that are resolved to it.
        (!endpoint.is_loopback()).then_some((index, endpoint, authorities))
    });
    dialled.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use ocm_checks::snapshot::Side;
    use ocm_checks::tls::ObjectKind;

    use super::super::material::{copy, place};
    use super::*;

    /// A copy of a cluster with one authority, whose bytes nobody reads.
    fn of(what: Copied, cluster: &str, authority: &[u8], server: &str) -> Copy {
        let place = place(Side::Hub, ObjectKind::ManagedCluster, None, cluster, "x");
        let authorities = vec![ByteString(authority.to_vec())];
        let (cluster, server) = (Some(cluster.to_owned()), Some(server.to_owned()));
        Copy { cluster, server, authorities, ..copy(what, place, b"") }
    }

    #[test]
    fn only_addresses_of_clusters_that_publish_another_authority_are_dialled() {
        use Copied::{OwnApi, Reported};
        let reported = |cluster: &str, authority: &[u8], server: &str| of(Reported, cluster, authority, server);
        let own = of(OwnApi, "c1", b"own", "");
        let copies = vec![
            own,
            reported("c1", b"own", "https://c1:6443"),
            reported("c1", b"balancer", "https://balancer.example"),
            reported("c1", b"balancer", "https://127.0.0.1:6443"),
            reported("c1", b"balancer", "http://c1:80"),
            // Of this one nothing is known.
            reported("c2", b"balancer", "https://c2.example"),
        ];
        let dialled = asked(&copies);
        let told =
            |(index, endpoint, by): &(usize, Endpoint, Vec<Vec<u8>>)| (*index, endpoint.host.clone(), by.concat());
        let told: Vec<_> = dialled.iter().map(told).collect();
        assert_eq!(told, [(2, "balancer.example".to_owned(), b"balancer".to_vec())]);
        let own = of(OwnApi, "c1", b"own", "");
        let many = (0..100).map(|n| reported("c1", b"balancer", &format!("https://b{n}.example")));
        assert_eq!(asked(&many.chain([own]).collect::<Vec<_>>()).len(), MOST);
    }
}
