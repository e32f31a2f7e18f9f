//! Certificate requests: rules R1 to R7 without what stands in the request itself, which CEL cannot read.

use ocm_rules::Code;
use ocm_rules::csr::{ADDON_NAME, API_SIGNER, CLUSTER_NAME, CSR_USER, GRPC_SIGNER};
use ocm_rules::identity::{BOOTSTRAP_USER, CREDENTIAL_ID, GRPC_SERVER_USER, PREFIX, TOKEN_GROUP};

use super::cel::{list, text};
use super::policy::{Check, Policy, Rule};
use super::{Settings, identities};

/// Name of the policy.
pub(super) const NAME: &str = "certificatesigningrequests.baseline.kubectl-ocm.dev";

const GROUP: &str = "certificates.k8s.io";

/// Signers of kubelets, without which no node starts (<https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers>).
pub(crate) const KUBELET_SIGNERS: [&str; 2] =
    ["kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"];

pub(super) fn policy(settings: &Settings) -> Policy {
    let rule = |resource, operations| Rule { group: GROUP, version: "*", resource, operations };
    Policy {
        name: NAME,
        rules: vec![
            rule("certificatesigningrequests", &["CREATE"]),
            rule("certificatesigningrequests/approval", &["UPDATE"]),
        ],
        conditions: conditions(),
        variables: variables(settings),
        checks: checks(settings),
    }
}

/// Those that concern the hub: kubelets and people ask for certificates in the same way.
fn conditions() -> Vec<(&'static str, String)> {
    let has = |map: &str, key: &str| format!("{} in object.metadata.?{map}.orValue({{}})", text(key));
    let concerns = [
        has("labels", CLUSTER_NAME),
        has("labels", ADDON_NAME),
        has("annotations", CSR_USER),
        format!("object.spec.signerName == {}", text(GRPC_SIGNER)),
        format!("object.spec.?username.orValue(\"\").startsWith({})", text(PREFIX)),
        format!("object.spec.?username.orValue(\"\") in {}", list([BOOTSTRAP_USER, GRPC_SERVER_USER])),
        format!(
            "(object.spec.?username.orValue(\"\").matches({}) && {} in object.spec.?groups.orValue([]))",
            text(identities::BOOTSTRAP_TOKEN),
            text(TOKEN_GROUP)
        ),
    ];
    // A denial is a safe answer, whatever it is about.
    let approved = |of: &str| format!("{of}.?status.?conditions.orValue([]).exists(c, c.type == \"Approved\")");
    let is_approval =
        format!("request.operation == \"CREATE\" || ({} && !{})", approved("object"), approved("oldObject"));
    let kubelets = list(KUBELET_SIGNERS);
    vec![
        ("not-a-kubelets", format!("!(object.spec.signerName in {kubelets})")),
        ("concerns-the-hub", concerns.join(" || ")),
        ("asks-or-approves", is_approval),
    ]
}

fn variables(settings: &Settings) -> Vec<(&'static str, String)> {
    let label = |key: &str| format!("object.metadata.?labels[?{}].orValue(\"\")", text(key));
    // The API server has written down who asked before this is judged, also where somebody approves later.
    let registers = format!(
        "variables.by == {} || (variables.isToken && (variables.grpc || {} in object.spec.?groups.orValue([]))) || \
         variables.by in {}",
        text(BOOTSTRAP_USER),
        text(TOKEN_GROUP),
        list(settings.requests.requesters.iter().map(String::as_str)),
    );
    vec![
        ("user", "object.spec.?username.orValue(\"\")".to_owned()),
        ("label", label(CLUSTER_NAME)),
        ("addon", label(ADDON_NAME)),
        ("isAddon", format!("{} in object.metadata.?labels.orValue({{}})", text(ADDON_NAME))),
        ("grpc", format!("variables.user == {}", text(GRPC_SERVER_USER))),
        ("onBehalf", format!("object.metadata.?annotations[?{}].orValue(\"\")", text(CSR_USER))),
        ("by", "variables.grpc ? variables.onBehalf : variables.user".to_owned()),
        ("hubGiven", format!("variables.by.startsWith({})", text(PREFIX))),
        ("isToken", format!("variables.by.matches({})", text(identities::BOOTSTRAP_TOKEN))),
        ("credentials", format!("object.spec.?extra[?{}].orValue([])", text(CREDENTIAL_ID))),
        ("certificate", "variables.credentials.exists(c, c.startsWith(\"X509SHA256=\"))".to_owned()),
        ("registers", registers),
        ("forHub", format!("object.spec.signerName in {}", list([API_SIGNER, GRPC_SIGNER]))),
    ]
}

fn checks(settings: &Settings) -> Vec<Check> {
    let account = "variables.user.startsWith(\"system:serviceaccount:\") && variables.user.split(\":\").size() >= 4";
    let namespace = "variables.user.split(\":\")[2]";
    let genuine = format!(
        "(!({account}) || (!variables.certificate && object.spec.?uid.orValue(\"\") != \"\" && \
         \"system:serviceaccounts\" in object.spec.?groups.orValue([]) && \
         (\"system:serviceaccounts:\" + {namespace}) in object.spec.?groups.orValue([]))) && \
         !(!variables.grpc && variables.isToken && variables.certificate)"
    );
    let agent_of_label = format!(
        "(variables.by.startsWith({} + variables.label + \":\") && variables.by.split(\":\").size() == 4)",
        text(PREFIX)
    );
    let addon_of_label = format!(
        "variables.by.startsWith({} + variables.label + \":addon:\" + variables.addon + \":agent:\")",
        text(&format!("{PREFIX}cluster:"))
    );
    // The groups are those of who made the request: none are known of whom the gRPC server names.
    let aws_of_label =
        identities::is_aws_agent_of("variables.user", "object.spec.?groups.orValue([])", "variables.label");
    let known = list(["digital signature", "key encipherment", "client auth"]);
    let usages = format!(
        "\"digital signature\" in object.spec.usages && \"client auth\" in object.spec.usages && \
         object.spec.usages.all(u, u in {known})"
    );
    let most = settings.requests.max_lifetime_seconds;
    let lifetime = match settings.requests.signer_default_seconds <= most {
        true => format!("object.spec.?expirationSeconds.orValue(1) <= {most}"),
        false => format!("object.spec.?expirationSeconds.orValue({most} + 1) <= {most}"),
    };
    // Of an add-on with a signer of its own, the certificate is no identity on the hub: its signer decides.
    let identity = |holds: &str| format!("(variables.isAddon && !variables.forHub) || ({holds})");
    let agents = |holds: &str| format!("variables.isAddon || ({holds})");
    let signer = format!("object.spec.signerName == (variables.grpc ? {} : {})", text(GRPC_SIGNER), text(API_SIGNER));
    let claims = format!(
        "variables.grpc || (object.spec.signerName != {} && !({} in object.metadata.?annotations.orValue({{}})))",
        text(GRPC_SIGNER),
        text(CSR_USER)
    );
    vec![
        Check::new(
            Code::ClusterLabel,
            "the label open-cluster-management.io/cluster-name has to name the cluster",
            "variables.label.matches(\"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$\")",
        ),
        Check::new(
            Code::ClusterLabel,
            "whoever approves may not change the labels or annotations of a request",
            "request.operation == \"CREATE\" || (object.metadata.?labels == oldObject.metadata.?labels && \
             object.metadata.?annotations == oldObject.metadata.?annotations)",
        ),
        Check::new(Code::GrpcClaim, "only the hub's gRPC server asks for others", claims),
        Check::new(
            Code::Impersonated,
            "the requester has the name of a service account or a bootstrap token but not its credentials",
            agents(&genuine),
        ),
        Check::new(
            Code::GrpcClaim,
            "the hub's gRPC server has to say for whom it asks",
            "variables.isAddon || !variables.grpc || variables.onBehalf != \"\"",
        ),
        Check::new(
            Code::OtherAgent,
            "an agent may only ask for its own name again",
            agents(&format!("!variables.hubGiven || {agent_of_label}")),
        ),
        Check::new(
            Code::Requester,
            "the requester may not register clusters",
            agents("variables.hubGiven || variables.registers"),
        ),
        Check::new(
            Code::Requester,
            "only the agents of the cluster and of the add-on may ask for the add-on's certificate",
            format!("!variables.isAddon || {agent_of_label} || {addon_of_label} || {aws_of_label}"),
        ),
        Check::new(Code::Signer, "the request asks another signer than the one for its requester", agents(&signer)),
        Check::new(Code::Usages, "only the usages of a client certificate may be asked for", identity(&usages)),
        Check::new(Code::Lifetime, "a longer lifetime is asked for than allowed", identity(&lifetime)),
    ]
}
