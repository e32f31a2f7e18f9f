//! What a user of a kubeconfig sends: its `Authorization` and its certificate.

use std::fmt::Display;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use kube::config::{AuthInfo, ExecAuthCluster};
use ocm_core::Failure;
use ocm_net::Identity;
use secrecy::{ExposeSecret as _, SecretString};

use super::header::{bearer, sensitive};
use super::plugin::{self, Printed, Refreshed};
use super::token_file::TokenFile;

/// Says why a kubeconfig cannot be used; the causes given to it name no secret.
pub(crate) type Unusable<'a> = &'a dyn Fn(&dyn Display) -> Failure;

/// What requests carry in `Authorization`.
#[derive(Clone)]
pub(crate) enum Credentials {
    /// Nothing: a certificate proves who sends them, or nobody does.
    None,
    /// What stays: a token, or a name and a password.
    Fixed(HeaderValue),
    /// A token in a file, which is replaced there before it ends.
    File(Arc<TokenFile>),
    /// A token that ends, and the plugin that prints the next one.
    Plugin(Refreshed),
}

impl Credentials {
    /// Those of a user, as client-go orders them: a file of a token counts more than a token beside it
    /// (`rest.Config.BearerTokenFile`), and a credential plugin is run only if there is nothing else, not even a certificate.
    /// The certificate that it prints takes the place of the user's.
    pub(crate) async fn of(
        user: &mut AuthInfo,
        cluster: &ExecAuthCluster,
        unusable: Unusable<'_>,
    ) -> Result<Self, Failure> {
        let name = user.username.take().filter(|name| !name.is_empty());
        let token = user.token.take().filter(|token| !token.expose_secret().is_empty());
        let (file, provider) = (user.token_file.take(), user.auth_provider.take());
        if name.is_some() && (token.is_some() || file.is_some()) {
            return Err(unusable(&"its user has a user name and a token, and only one of them can be sent"));
        }
        // Kubernetes 1.26 and newer know no other one. Its token is not renewed here.
        if let Some(provider) = provider.as_ref().filter(|provider| provider.name != "oidc") {
            let failure = unusable(&format!("its auth-provider {:?} is not supported", provider.name));
            return Err(failure.hint("log in with a credential plugin (exec) instead"));
        }
        if let Some(name) = name {
            let password = user.password.as_ref().map_or("", |password| password.expose_secret());
            let value = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
            return Ok(Self::Fixed(sensitive(&value).ok_or_else(|| unusable(&"its password cannot be sent"))?));
        }
        if let Some(file) = file {
            return Ok(Self::File(Arc::new(TokenFile::new(file, token).map_err(|error| unusable(&error))?)));
        }
        if let Some(token) = token {
            return Self::token(&token, unusable);
        }
        if let Some(provider) = provider {
            let token = provider.config.get("id-token").filter(|token| !token.is_empty());
            let token = token.ok_or_else(|| {
                let failure = unusable(&"its auth-provider \"oidc\" has no id-token");
                failure.hint("log in again, or with a credential plugin (exec) instead")
            })?;
            return Self::token(&token.clone().into(), unusable);
        }
        let Some(exec) = user.exec.take().filter(|_| !has_certificate(user)) else { return Ok(Self::None) };
        match plugin::run(exec, user, cluster).await? {
            Printed::Refreshed(token) => Ok(Self::Plugin(token)),
            Printed::Token(token) => Self::token(&token, unusable),
            Printed::Nothing => Ok(Self::None),
        }
    }

    fn token(token: &SecretString, unusable: Unusable<'_>) -> Result<Self, Failure> {
        Ok(Self::Fixed(bearer(token).ok_or_else(|| unusable(&"its token cannot be sent: it is not one line"))?))
    }

    /// The header of a request that is sent now.
    pub(crate) async fn authorization(&self) -> Result<Option<HeaderValue>, Failure> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(value) => Ok(Some(value.clone())),
            Self::File(file) => Ok(Some(file.authorization())),
            Self::Plugin(token) => token.authorization().await.map(Some),
        }
    }
}

/// Whether requests of a user carry anything that nobody else may read.
pub(crate) fn sends_any(user: &AuthInfo) -> bool {
    let has_token = user.token.is_some() || user.token_file.is_some() || user.auth_provider.is_some();
    has_token || user.username.is_some() || (user.exec.is_some() && !has_certificate(user))
}

fn has_certificate(user: &AuthInfo) -> bool {
    (user.client_certificate.is_some() || user.client_certificate_data.is_some())
        && (user.client_key.is_some() || user.client_key_data.is_some())
}

/// What a user shows itself with in the TLS handshake: both parts, or none.
pub(crate) fn certificate(user: &AuthInfo, unusable: Unusable<'_>) -> Result<Option<Identity>, Failure> {
    let data = user.client_certificate_data.as_deref();
    let chain = read("client-certificate", data, user.client_certificate.as_deref());
    let data = user.client_key_data.as_ref().map(|key| key.expose_secret());
    let key = read("client-key", data, user.client_key.as_deref());
    match (chain.map_err(|error| unusable(&error))?, key.map_err(|error| unusable(&error))?) {
        (Some(chain), Some(key)) => {
            let identity = Identity::from_pem(&chain, &key);
            Ok(Some(identity.map_err(|error| unusable(&error))?))
        }
        (Some(_), None) => Err(unusable(&"its user has a client certificate, and no key of it (client-key)")),
        (None, Some(_)) => Err(unusable(&"its user has a client key, and no certificate of it (client-certificate)")),
        (None, None) => Ok(None),
    }
}

/// What a kubeconfig holds in base64, or a file that it names.
fn read(what: &str, data: Option<&str>, file: Option<&str>) -> Result<Option<Vec<u8>>, String> {
    if let Some(data) = data {
        // Lines are as welcome as in Go. The error would quote what it could not read.
        let data: String = data.split(['\r', '\n']).collect();
        return STANDARD.decode(data).map(Some).map_err(|_| format!("its {what}-data is not base64"));
    }
    let Some(file) = file else { return Ok(None) };
    std::fs::read(file).map(Some).map_err(|error| format!("its {what} {file:?} cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::config::ExecConfig;
    use ocm_core::Reason;

    #[tokio::test]
    async fn a_plugin_is_not_run_beside_a_certificate() {
        let exec: ExecConfig = serde_json::from_value(serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent/plugin",
        }))
        .unwrap();
        let unusable = |cause: &dyn Display| Failure::new(Reason::Kubeconfig, cause.to_string());
        let cluster = ExecAuthCluster::try_from(&kube::config::Cluster::default()).unwrap();
        let mut user = AuthInfo { exec: Some(exec.clone()), ..AuthInfo::default() };
        assert!(sends_any(&user) && Credentials::of(&mut user, &cluster, &unusable).await.is_err());
        let mut user = AuthInfo {
            exec: Some(exec),
            client_certificate: Some("admin.crt".to_owned()),
            client_key: Some("admin.key".to_owned()),
            ..AuthInfo::default()
        };
        assert!(!sends_any(&user));
        assert!(matches!(Credentials::of(&mut user, &cluster, &unusable).await, Ok(Credentials::None)));
    }

    #[test]
    fn data_may_be_broken_into_lines() {
        assert_eq!(read("client-key", Some("YW\r\nJj\n"), None).unwrap().unwrap(), b"abc");
        assert!(read("client-key", Some("?"), None).unwrap_err().contains("client-key-data"));
    }
}
