//! What a cluster says of the user, who it is and what it may do; and the tokens that it makes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

part_object! {
    /// Whether the user may do something.
    pub struct SelfSubjectAccessReview {
        /// The answer.
        "status" => status: Option<AccessReviewStatus>,
    }
    group "authorization.k8s.io", version "v1", plural "selfsubjectaccessreviews", scope ClusterResourceScope
}

part! {
    /// Whether the user may.
    pub struct AccessReviewStatus {
        /// Whether it is so.
        "allowed" => allowed: bool,
    }
}

part_object! {
    /// Who the user is.
    pub struct SelfSubjectReview {
        /// The answer.
        "status" => status: Option<SelfSubjectReviewStatus>,
    }
    group "authentication.k8s.io", version "v1", plural "selfsubjectreviews", scope ClusterResourceScope
}

part! {
    /// Who the user is.
    pub struct SelfSubjectReviewStatus {
        /// The user.
        "userInfo" => user_info: Option<UserInfo>,
    }

    /// A user.
    pub struct UserInfo {
        /// The name.
        "username" => username: Option<String>,
        /// The groups that the user is in.
        "groups" => groups: Option<Vec<String>>,
    }
}

part_object! {
    /// A token of a service account.
    pub struct TokenRequest {
        /// The answer.
        "status" => status: Option<TokenRequestStatus>,
    }
    group "authentication.k8s.io", version "v1", plural "tokenrequests", scope NamespaceResourceScope
}

part! {
    /// A token that was made.
    pub struct TokenRequestStatus {
        /// The token.
        "token" => token: String,
        /// Until when it is valid. A token of which that is not known is no answer.
        "expirationTimestamp" => expiration_timestamp: Option<Time>,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::authentication::v1 as authentication;
    use k8s_openapi::api::authorization::v1 as authorization;
    use serde_json::json;

    use super::super::tests::{both, refused};
    use super::*;

    #[test]
    fn what_a_user_may_do_is_read() {
        for status in [
            json!({"allowed": true, "reason": "RBAC"}),
            json!({"allowed": false, "denied": true}),
            json!({}),
            json!(null),
        ] {
            let (part, whole): (SelfSubjectAccessReview, authorization::SelfSubjectAccessReview) = both(json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {"creationTimestamp": null},
                "spec": {"resourceAttributes": {"verb": "get", "group": "apps", "resource": "deployments", "name": "n"}}, "status": status,
            }));
            assert_eq!(part.metadata, whole.metadata);
            assert_eq!(part.status.map(|status| status.allowed), whole.status.map(|status| status.allowed));
        }
        for wrong in [json!({"spec": {}, "status": {"allowed": "true"}}), json!({"spec": {}, "status": true})] {
            refused::<SelfSubjectAccessReview, authorization::SelfSubjectAccessReview>(wrong);
        }
    }

    #[test]
    fn a_token_is_read_and_until_when_it_is_valid() {
        let request = |status: serde_json::Value| {
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {"name": "a", "namespace": "n"},
                "spec": {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600, "boundObjectRef": null},
                "status": status})
        };
        let object = request(json!({"token": "t", "expirationTimestamp": "2026-01-01T01:00:00Z"}));
        let whole: authentication::TokenRequest = serde_json::from_value(object.clone()).unwrap();
        let part: TokenRequest = serde_json::from_value(object).unwrap();
        assert_eq!(part.metadata, whole.metadata);
        let (part, whole) = (part.status.unwrap(), whole.status.unwrap());
        assert_eq!((part.token, part.expiration_timestamp), (whole.token, Some(whole.expiration_timestamp)));
        for wrong in
            [json!({"token": 1, "expirationTimestamp": "2026-01-01T01:00:00Z"}), json!({"expirationTimestamp": "soon"})]
        {
            refused::<TokenRequest, authentication::TokenRequest>(request(wrong));
        }
    }

    #[test]
    fn who_the_user_is_is_read() {
        let (part, whole): (SelfSubjectReview, authentication::SelfSubjectReview) = both(json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"userInfo": {"username": "admin", "uid": "u", "groups": ["system:masters"], "extra": {"k": ["v"]}}},
        }));
        assert_eq!(part.metadata, whole.metadata);
        let (part, whole) = (part.status.unwrap().user_info.unwrap(), whole.status.unwrap().user_info.unwrap());
        assert_eq!((part.username, part.groups), (whole.username, whole.groups));
        for wrong in
            [json!({"status": {"userInfo": {"username": 1}}}), json!({"status": {"userInfo": {"groups": "g"}}})]
        {
            refused::<SelfSubjectReview, authentication::SelfSubjectReview>(wrong);
        }
    }
}
