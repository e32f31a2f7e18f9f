//! How an agent reaches the hub's gRPC server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ocm_core::yaml;
use secrecy::SecretString;
use serde_json::Value;

/// What `config.yaml` of an agent that registers over gRPC says.
pub(crate) struct GrpcConfig {
    /// Host and port, without a scheme.
    pub(crate) url: String,
    /// The authorities that vouch for it; none: those of the system.
    pub(crate) pem: Option<Vec<u8>>,
    /// What the agent registers with; none in what it was let in with.
    pub(crate) token: Option<SecretString>,
}

/// Reads `config.yaml`, in which the authorities are base64 of PEM.
pub(crate) fn grpc_config(config: &str) -> Option<GrpcConfig> {
    let config: Value = yaml::from_str(config).ok()?;
    let url = config.get("url")?.as_str()?;
    let url = url.split_once("://").map_or(url, |(_, rest)| rest).to_owned();
    let data = config.get("caData").and_then(Value::as_str).filter(|data| !data.is_empty());
    let pem = data.map(|data| STANDARD.decode(data.trim()).unwrap_or_else(|_| data.as_bytes().to_vec()));
    let token = config.get("token").and_then(Value::as_str).filter(|token| !token.is_empty());
    Some(GrpcConfig { url, pem, token: token.map(SecretString::from) })
}

#[cfg(test)]
mod tests {
    use ocm_core::certificate::to_pem_base64;

    use super::*;
    use crate::tls::material::certificates;

    #[test]
    fn the_settings_of_grpc_are_read() {
        let certificate = rcgen::generate_simple_self_signed(vec!["hub".to_owned()]).unwrap().cert.der().to_vec();
        let data = to_pem_base64(std::slice::from_ref(&certificate));
        let config = format!("caData: {data}\nkeepAliveConfig: {{}}\ntoken: secret\nurl: hub.example:30090\n");
        let GrpcConfig { url, pem, .. } = grpc_config(&config).unwrap();
        assert_eq!((url.as_str(), certificates(&pem.unwrap())), ("hub.example:30090", vec![certificate]));
        assert!(grpc_config("token: x").is_none() && grpc_config(": [").is_none());
    }
}
