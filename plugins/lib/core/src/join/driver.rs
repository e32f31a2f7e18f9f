//! By which driver an agent registers, and whether another one means that it registers anew.

use ocm_api::operator::RegistrationAuthType;
use serde_json::Value;

use crate::certificate;
use crate::grpc::Server;

/// The driver that a Klusterlet says. None means csr. Upstream: `registrationDriver.authType`.
pub fn driver_of(klusterlet: Option<&Value>) -> RegistrationAuthType {
    let said = klusterlet.and_then(|live| live.pointer("/spec/registrationConfiguration/registrationDriver/authType"));
    said.and_then(Value::as_str).filter(|word| !word.is_empty()).map(RegistrationAuthType::from).unwrap_or_default()
}

/// Whether an agent that has registered in the one way has to register anew to come in the other: by another driver, or
/// over gRPC at another server or with other authorities.
pub fn registers_anew(
    (former, at): (&RegistrationAuthType, Option<&Server>),
    (wanted, server): (&RegistrationAuthType, Option<&Server>),
) -> bool {
    former != wanted || (*wanted == RegistrationAuthType::Grpc && !is_same(at, server))
}

fn is_same(one: Option<&Server>, other: Option<&Server>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
    one.address == other.address && certificate::are_same(&one.ca, &other.ca)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::grpc::Address;

    #[test]
    fn a_klusterlet_that_says_nothing_registers_by_csr() {
        let klusterlet = |driver: Value| json!({"spec": {"registrationConfiguration": {"registrationDriver": driver}}});
        for (live, driver) in [
            (None, RegistrationAuthType::Csr),
            (Some(json!({"spec": {}})), RegistrationAuthType::Csr),
            (Some(klusterlet(json!({"authType": ""}))), RegistrationAuthType::Csr),
            (Some(klusterlet(json!({"authType": "grpc"}))), RegistrationAuthType::Grpc),
            (Some(klusterlet(json!({"authType": "awsirsa"}))), RegistrationAuthType::AwsIrsa),
        ] {
            assert_eq!(driver_of(live.as_ref()), driver, "{live:?}");
        }
    }

    #[test]
    fn another_driver_or_server_means_another_registration() {
        use RegistrationAuthType::{Csr, Grpc};
        let server = |host: &str, ca: &[&[u8]]| Server {
            address: Address { host: host.to_owned(), port: 443 },
            ca: ca.iter().map(|ca| ca.to_vec()).collect(),
        };
        let (a, b) = (server("a", &[b"x", b"y"]), server("b", &[b"x", b"y"]));
        assert!(registers_anew((&Csr, None), (&Grpc, Some(&a))));
        assert!(registers_anew((&Grpc, Some(&a)), (&Csr, None)));
        assert!(registers_anew((&Grpc, Some(&a)), (&Grpc, Some(&b))));
        assert!(registers_anew((&Grpc, Some(&a)), (&Grpc, Some(&server("a", &[b"x"])))));
        assert!(registers_anew((&Grpc, None), (&Grpc, Some(&a))));
        assert!(!registers_anew((&Grpc, Some(&a)), (&Grpc, Some(&server("a", &[b"y", b"x"])))));
        // What was left of an earlier driver does not count.
        assert!(!registers_anew((&Csr, Some(&a)), (&Csr, None)));
    }
}
