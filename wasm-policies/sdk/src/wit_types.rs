//! Requests and decisions as they lie in memory when host and policy hand them to each other: the records of
//! `wasm-policies/wit` in the layout of the Component Model's canonical ABI, which is that of C.
//!
//! Nothing of a request is copied: its texts are pieces of the memory into which the host has written it, and a part
//! becomes the type of `ocm-policy-abi` when the policy looks at it.

#![expect(unsafe_code, reason = "the host writes into and reads from our memory by address")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use ocm_policy_abi as abi;
use ocm_policy_abi::{Map, Text};
use serde_json::Value as Json;

/// A list: where it begins, and how many there are.
#[repr(C)]
pub struct List<'a, T> {
    start: *const T,
    length: usize,
    belongs: PhantomData<&'a T>,
}

impl<'a, T> List<'a, T> {
    fn slice(&self) -> &'a [T] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: the host has written so many there, and nobody changes them.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    fn each<U: From<&'a T>>(&self) -> Vec<U> {
        self.slice().iter().map(U::from).collect()
    }

    /// A list for the host. It stays where it is: the instance ends with the answer.
    pub(crate) fn given(list: Vec<T>) -> Self {
        let list = list.leak();
        Self { start: list.as_ptr(), length: list.len(), belongs: PhantomData }
    }
}

/// A text.
#[repr(transparent)]
pub struct Str<'a>(List<'a, u8>);

impl<'a> Str<'a> {
    /// The characters.
    pub fn get(&self) -> &'a str {
        // SAFETY: the host writes UTF-8 only.
        unsafe { std::str::from_utf8_unchecked(self.0.slice()) }
    }

    /// A text for the host.
    pub fn given(text: String) -> Self {
        Self(List::given(text.into_bytes()))
    }
}

impl<'a> From<&Str<'a>> for Text<'a> {
    fn from(text: &Str<'a>) -> Self {
        text.get().into()
    }
}

/// Something that may be missing.
#[repr(C)]
pub struct Maybe<T> {
    is_there: u8,
    it: MaybeUninit<T>,
}

impl<T> Maybe<T> {
    fn get(&self) -> Option<&T> {
        // SAFETY: the host has written it where it says so.
        (self.is_there != 0).then(|| unsafe { self.it.assume_init_ref() })
    }

    fn given(it: Option<T>) -> Self {
        Self { is_there: it.is_some().into(), it: it.map_or(MaybeUninit::uninit(), MaybeUninit::new) }
    }
}

impl<'a> Maybe<Str<'a>> {
    fn text(&self) -> Option<Text<'a>> {
        self.get().map(Text::from)
    }
}

/// `entry`.
#[repr(C)]
pub struct Entry<'a> {
    key: Str<'a>,
    value: Str<'a>,
}

fn map<'a>(entries: &List<'a, Entry<'a>>) -> Map<'a, Text<'a>> {
    entries.slice().iter().map(|Entry { key, value }| (key.get(), Text::from(value))).collect()
}

/// `entries`.
#[repr(C)]
pub struct Entries<'a> {
    key: Str<'a>,
    values: List<'a, Str<'a>>,
}

/// `requester`.
#[repr(C)]
pub struct Requester<'a> {
    username: Str<'a>,
    uid: Maybe<Str<'a>>,
    groups: List<'a, Str<'a>>,
    extra: List<'a, Entries<'a>>,
    certificate_sha256: Maybe<Str<'a>>,
}

impl<'a> From<&'a Requester<'a>> for abi::Requester<'a> {
    fn from(requester: &'a Requester<'a>) -> Self {
        let Requester { username, uid, groups, extra, certificate_sha256 } = requester;
        let extra = extra.slice().iter().map(|Entries { key, values }| (key.get(), values.each())).collect();
        Self {
            username: username.into(),
            uid: uid.text(),
            groups: groups.each(),
            extra,
            certificate_sha256: certificate_sha256.text(),
        }
    }
}

/// `api-object`.
#[repr(C)]
pub struct ApiObject<'a> {
    group: Str<'a>,
    version: Str<'a>,
    kind: Str<'a>,
    resource: Str<'a>,
    subresource: Maybe<Str<'a>>,
    namespace: Maybe<Str<'a>>,
    name: Maybe<Str<'a>>,
    operation: Str<'a>,
    field_manager: Maybe<Str<'a>>,
    options: List<'a, Entry<'a>>,
}

impl<'a> From<&'a ApiObject<'a>> for abi::Resource<'a> {
    fn from(object: &'a ApiObject<'a>) -> Self {
        let ApiObject {
            group,
            version,
            kind,
            resource,
            subresource,
            namespace,
            name,
            operation,
            field_manager,
            options,
        } = object;
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            resource: resource.into(),
            subresource: subresource.text(),
            namespace: namespace.text(),
            name: name.text(),
            operation: operation.into(),
            field_manager: field_manager.text(),
            options: map(options),
        }
    }
}

/// `owner`.
#[repr(C)]
pub struct Owner<'a> {
    api_version: Str<'a>,
    kind: Str<'a>,
    name: Str<'a>,
    uid: Str<'a>,
    controller: u8,
}

impl<'a> From<&'a Owner<'a>> for abi::Owner<'a> {
    fn from(Owner { api_version, kind, name, uid, controller }: &'a Owner<'a>) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            uid: uid.into(),
            controller: *controller != 0,
        }
    }
}

/// `taint`.
#[repr(C)]
pub struct Taint<'a> {
    key: Str<'a>,
    value: Str<'a>,
    effect: Str<'a>,
    added: Maybe<i64>,
}

impl<'a> From<&'a Taint<'a>> for abi::Taint<'a> {
    fn from(Taint { key, value, effect, added }: &'a Taint<'a>) -> Self {
        Self { key: key.into(), value: value.into(), effect: effect.into(), added: added.get().copied() }
    }
}

/// `client-config`.
#[repr(C)]
pub struct ClientConfig<'a> {
    url: Str<'a>,
    ca_sha256: Maybe<Str<'a>>,
}

impl<'a> From<&'a ClientConfig<'a>> for abi::ClientConfig<'a> {
    fn from(ClientConfig { url, ca_sha256 }: &'a ClientConfig<'a>) -> Self {
        Self { url: url.into(), ca_sha256: ca_sha256.text() }
    }
}

/// `claim`.
#[repr(C)]
pub struct Claim<'a> {
    name: Str<'a>,
    value: Str<'a>,
}

impl<'a> From<&'a Claim<'a>> for abi::Claim<'a> {
    fn from(Claim { name, value }: &'a Claim<'a>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// `condition`.
#[repr(C)]
pub struct Condition<'a> {
    kind: Str<'a>,
    status: Str<'a>,
    reason: Str<'a>,
    message: Str<'a>,
    since: Maybe<i64>,
}

impl<'a> From<&'a Condition<'a>> for abi::Condition<'a> {
    fn from(Condition { kind, status, reason, message, since }: &'a Condition<'a>) -> Self {
        Self {
            kind: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            since: since.get().copied(),
        }
    }
}

/// `cluster`.
#[repr(C)]
pub struct Cluster<'a> {
    name: Str<'a>,
    uid: Maybe<Str<'a>>,
    resource_version: Maybe<Str<'a>>,
    generation: Maybe<i64>,
    labels: List<'a, Entry<'a>>,
    annotations: List<'a, Entry<'a>>,
    finalizers: List<'a, Str<'a>>,
    owners: List<'a, Owner<'a>>,
    created: Maybe<i64>,
    deleting: u8,
    accepted: u8,
    lease_duration_seconds: Maybe<i64>,
    taints: List<'a, Taint<'a>>,
    client_configs: List<'a, ClientConfig<'a>>,
    claims: List<'a, Claim<'a>>,
    kubernetes_version: Maybe<Str<'a>>,
    conditions: List<'a, Condition<'a>>,
    truncated: List<'a, Str<'a>>,
    more: List<'a, Fact<'a>>,
}

impl<'a> From<&'a Cluster<'a>> for abi::Cluster<'a> {
    fn from(cluster: &'a Cluster<'a>) -> Self {
        let Cluster {
            name,
            uid,
            resource_version,
            generation,
            labels,
            annotations,
            finalizers,
            owners,
            created,
            deleting,
            accepted,
            lease_duration_seconds,
            taints,
            client_configs,
            claims,
            kubernetes_version,
            conditions,
            truncated,
            more,
        } = cluster;
        Self {
            name: name.into(),
            uid: uid.text(),
            resource_version: resource_version.text(),
            generation: generation.get().copied(),
            labels: map(labels),
            annotations: map(annotations),
            finalizers: finalizers.each(),
            owners: owners.each(),
            created: created.get().copied(),
            deleting: *deleting != 0,
            accepted: *accepted != 0,
            lease_duration_seconds: lease_duration_seconds.get().copied(),
            taints: taints.each(),
            client_configs: client_configs.each(),
            claims: claims.each(),
            kubernetes_version: kubernetes_version.text(),
            conditions: conditions.each(),
            truncated: truncated.each(),
            more: facts(more),
        }
    }
}

/// `key`.
#[repr(C)]
pub struct Key<'a> {
    algorithm: Str<'a>,
    bits: u32,
}

/// `csr`.
#[repr(C)]
pub struct Csr<'a> {
    name: Maybe<Str<'a>>,
    uid: Maybe<Str<'a>>,
    resource_version: Maybe<Str<'a>>,
    labels: List<'a, Entry<'a>>,
    annotations: List<'a, Entry<'a>>,
    signer: Str<'a>,
    usages: List<'a, Str<'a>>,
    lifetime_seconds: Maybe<i64>,
    requester: Requester<'a>,
    created: Maybe<i64>,
    unreadable: Maybe<Str<'a>>,
    common_names: List<'a, Str<'a>>,
    organizations: List<'a, Str<'a>>,
    other_attributes: List<'a, Str<'a>>,
    alternative_names: List<'a, Str<'a>>,
    extensions: List<'a, Str<'a>>,
    key: Key<'a>,
    spki_sha256: Str<'a>,
    signature: Str<'a>,
    adds_condition: Maybe<Str<'a>>,
    state: Str<'a>,
    more: List<'a, Fact<'a>>,
}

impl<'a> From<&'a Csr<'a>> for abi::Csr<'a> {
    fn from(csr: &'a Csr<'a>) -> Self {
        let Csr {
            name,
            uid,
            resource_version,
            labels,
            annotations,
            signer,
            usages,
            lifetime_seconds,
            requester,
            created,
            unreadable,
            common_names,
            organizations,
            other_attributes,
            alternative_names,
            extensions,
            key: Key { algorithm, bits },
            spki_sha256,
            signature,
            adds_condition,
            state,
            more,
        } = csr;
        Self {
            name: name.text(),
            uid: uid.text(),
            resource_version: resource_version.text(),
            labels: map(labels),
            annotations: map(annotations),
            signer: signer.into(),
            usages: usages.each(),
            lifetime_seconds: lifetime_seconds.get().copied(),
            requester: requester.into(),
            created: created.get().copied(),
            unreadable: unreadable.text(),
            common_names: common_names.each(),
            organizations: organizations.each(),
            other_attributes: other_attributes.each(),
            alternative_names: alternative_names.each(),
            extensions: extensions.each(),
            key: abi::Key { algorithm: algorithm.into(), bits: *bits },
            spki_sha256: spki_sha256.into(),
            signature: abi::Signature::of(signature.get()),
            adds_condition: adds_condition.text(),
            state: state.into(),
            more: facts(more),
        }
    }
}

/// `value`.
#[repr(C)]
pub struct Value<'a> {
    case: u8,
    of: ValueOf<'a>,
}

#[repr(C)]
union ValueOf<'a> {
    boolean: u8,
    integer: i64,
    text: std::mem::ManuallyDrop<Str<'a>>,
    texts: std::mem::ManuallyDrop<List<'a, Str<'a>>>,
}

impl<'a> From<&'a Value<'a>> for Json {
    fn from(value: &'a Value<'a>) -> Self {
        // SAFETY: the host has written what it says.
        unsafe {
            match value.case {
                0 => Self::Null,
                1 => Self::Bool(value.of.boolean != 0),
                2 => value.of.integer.into(),
                3 => value.of.text.get().into(),
                5 => Self::Array(value.of.texts.slice().iter().map(|text| text.get().into()).collect()),
                _ => match serde_json::from_str(value.of.text.get()) {
                    Ok(json) => json,
                    // The policy cannot know what it decides about: it ends here, which is an error and never an allow.
                    Err(error) => panic!("the request breaks the contract: {error}"),
                },
            }
        }
    }
}

/// `tuple<string, value>`.
#[repr(C)]
pub struct Fact<'a> {
    name: Str<'a>,
    value: Value<'a>,
}

fn facts<'a>(facts: &List<'a, Fact<'a>>) -> Map<'a, Json> {
    facts.slice().iter().map(|Fact { name, value }| (name.get(), value.into())).collect()
}

/// `row`.
#[repr(C)]
pub struct Row<'a> {
    namespace: Maybe<Str<'a>>,
    name: Str<'a>,
    values: List<'a, Value<'a>>,
    complete: u8,
}

impl<'a> From<&'a Row<'a>> for abi::Row<'a> {
    fn from(Row { namespace, name, values, complete }: &'a Row<'a>) -> Self {
        Self { namespace: namespace.text(), name: name.into(), values: values.each(), complete: *complete != 0 }
    }
}

/// `table`.
#[repr(C)]
pub struct Table<'a> {
    name: Str<'a>,
    revision: Str<'a>,
    complete: u8,
    rows: List<'a, Row<'a>>,
}

impl<'a> From<&'a Table<'a>> for abi::Table<'a> {
    fn from(Table { name: _, revision, complete, rows }: &'a Table<'a>) -> Self {
        Self { revision: revision.into(), complete: *complete != 0, rows: rows.each() }
    }
}

/// `request`.
#[repr(C)]
pub struct Request<'a> {
    id: Str<'a>,
    operation: Str<'a>,
    now: i64,
    dry_run: u8,
    attempt: u32,
    stage: Maybe<Str<'a>>,
    requester: Requester<'a>,
    creator: Maybe<Requester<'a>>,
    resource: Maybe<ApiObject<'a>>,
    cluster: Maybe<Cluster<'a>>,
    previous: Maybe<Cluster<'a>>,
    csr: Maybe<Csr<'a>>,
    object: Maybe<Str<'a>>,
    previous_object: Maybe<Str<'a>>,
    evidence: List<'a, Table<'a>>,
    set_by_policies: List<'a, Entry<'a>>,
    obligations: List<'a, Str<'a>>,
    more: List<'a, Fact<'a>>,
}

impl<'a> Request<'a> {
    pub(crate) fn id(&self) -> Text<'a> {
        (&self.id).into()
    }

    pub(crate) fn operation(&self) -> abi::Operation {
        match abi::Operation::of(self.operation.get()) {
            Some(operation) => operation,
            // No host asks for what the manifest does not name. The policy ends here: an error, and never an allow.
            None => panic!("the request breaks the contract: its operation is not known"),
        }
    }

    pub(crate) fn now(&self) -> i64 {
        self.now
    }

    pub(crate) fn dry_run(&self) -> bool {
        self.dry_run != 0
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    pub(crate) fn stage(&self) -> Option<abi::Stage> {
        // Later hosts may know stages that this contract does not: then it is neither of those that it knows.
        self.stage.get().and_then(|word| abi::Stage::of(word.get()))
    }

    pub(crate) fn requester(&'a self) -> abi::Requester<'a> {
        (&self.requester).into()
    }

    pub(crate) fn creator(&'a self) -> Option<abi::Requester<'a>> {
        self.creator.get().map(Into::into)
    }

    pub(crate) fn resource(&'a self) -> Option<abi::Resource<'a>> {
        self.resource.get().map(Into::into)
    }

    pub(crate) fn cluster(&'a self) -> Option<abi::Cluster<'a>> {
        self.cluster.get().map(Into::into)
    }

    pub(crate) fn previous(&'a self) -> Option<abi::Cluster<'a>> {
        self.previous.get().map(Into::into)
    }

    pub(crate) fn csr(&'a self) -> Option<abi::Csr<'a>> {
        self.csr.get().map(Into::into)
    }

    pub(crate) fn object(&self) -> Option<&'a str> {
        self.object.get().map(Str::get)
    }

    pub(crate) fn previous_object(&self) -> Option<&'a str> {
        self.previous_object.get().map(Str::get)
    }

    pub(crate) fn evidence(&'a self) -> Map<'a, abi::Table<'a>> {
        self.evidence.slice().iter().map(|table| (table.name.get(), table.into())).collect()
    }

    pub(crate) fn set_by_policies(&self) -> Map<'a, Text<'a>> {
        map(&self.set_by_policies)
    }

    pub(crate) fn obligations(&self) -> Vec<Text<'a>> {
        self.obligations.each()
    }

    pub(crate) fn more(&'a self) -> Map<'a, Json> {
        facts(&self.more)
    }
}

/// `reason`.
#[repr(C)]
pub struct Reason {
    code: Str<'static>,
    message: Str<'static>,
    field: Maybe<Str<'static>>,
}

impl From<abi::Reason> for Reason {
    fn from(abi::Reason { code, message, field }: abi::Reason) -> Self {
        Self { code: Str::given(code), message: Str::given(message), field: Maybe::given(field.map(Str::given)) }
    }
}

/// `new-taint`.
#[repr(C)]
pub struct NewTaint {
    key: Str<'static>,
    value: Str<'static>,
    effect: Str<'static>,
}

/// `edit`.
#[repr(C)]
pub struct Edit {
    case: u8,
    of: EditOf,
}

#[repr(C)]
union EditOf {
    entry: std::mem::ManuallyDrop<Entry<'static>>,
    text: std::mem::ManuallyDrop<Str<'static>>,
    taint: std::mem::ManuallyDrop<NewTaint>,
    seconds: u32,
}

impl From<abi::Edit> for Edit {
    fn from(edit: abi::Edit) -> Self {
        use std::mem::ManuallyDrop as Kept;
        let entry = |key, value| EditOf { entry: Kept::new(pair((key, value))) };
        let text = |text| EditOf { text: Kept::new(Str::given(text)) };
        let (case, of) = match edit {
            abi::Edit::SetLabel { key, value } => (0, entry(key, value)),
            abi::Edit::RemoveLabel { key } => (1, text(key)),
            abi::Edit::SetAnnotation { key, value } => (2, entry(key, value)),
            abi::Edit::RemoveAnnotation { key } => (3, text(key)),
            abi::Edit::AddTaint { key, value, effect } => {
                let effect = Str::given(effect.word().to_owned());
                let taint = NewTaint { key: Str::given(key), value: Str::given(value), effect };
                (4, EditOf { taint: Kept::new(taint) })
            }
            abi::Edit::RemoveTaint { key } => (5, text(key)),
            abi::Edit::SetClusterSet { name } => (6, text(name)),
            abi::Edit::SetLeaseDuration { seconds } => (7, EditOf { seconds }),
        };
        Self { case, of }
    }
}

fn pair((key, value): (String, String)) -> Entry<'static> {
    Entry { key: Str::given(key), value: Str::given(value) }
}

/// `obligation`.
#[repr(C)]
pub struct Obligation {
    name: Str<'static>,
    within_seconds: Maybe<u32>,
    params: List<'static, Entry<'static>>,
}

impl From<abi::Obligation> for Obligation {
    fn from(abi::Obligation { name, within_seconds, params }: abi::Obligation) -> Self {
        Self {
            name: Str::given(name),
            within_seconds: Maybe::given(within_seconds),
            params: List::given(params.into_iter().map(pair).collect()),
        }
    }
}

/// `decision`.
#[repr(C)]
pub struct Decision {
    verdict: u8,
    ask_again_seconds: Maybe<u32>,
    reasons: List<'static, Reason>,
    warnings: List<'static, Str<'static>>,
    edits: List<'static, Edit>,
    obligations: List<'static, Obligation>,
    audit: List<'static, Entry<'static>>,
    more: List<'static, Fact<'static>>,
}

impl From<abi::Decision> for Decision {
    fn from(decision: abi::Decision) -> Self {
        let abi::Decision { verdict, ask_again_seconds, reasons, warnings, edits, obligations, audit, more } = decision;
        debug_assert!(more.is_empty(), "an answer has no way to say more");
        Self {
            verdict: match verdict {
                abi::Verdict::NoOpinion => 0,
                abi::Verdict::Allow => 1,
                abi::Verdict::Hold => 2,
                abi::Verdict::Deny => 3,
            },
            ask_again_seconds: Maybe::given(ask_again_seconds),
            reasons: List::given(reasons.into_iter().map(Into::into).collect()),
            warnings: List::given(warnings.into_iter().map(Str::given).collect()),
            edits: List::given(edits.into_iter().map(Into::into).collect()),
            obligations: List::given(obligations.into_iter().map(Into::into).collect()),
            audit: List::given(audit.into_iter().map(pair).collect()),
            // No host of this version of the contract knows any, so there is no way to add one.
            more: List::given(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{align_of, offset_of, size_of};

    use wit_parser::{Resolve, SizeAlign, TypeDefKind};

    use super::*;

    /// Name, size and alignment of a type, and its members with their offsets.
    type Layout = (&'static str, usize, usize, Vec<(&'static str, usize)>);

    macro_rules! layouts {
        ($($name:literal = $type:ty { $($field:ident),* };)*) => {
            vec![$((
                $name,
                size_of::<$type>(),
                align_of::<$type>(),
                vec![$((stringify!($field), offset_of!($type, $field))),*],
            )),*]
        };
    }

    fn ours() -> Vec<Layout> {
        layouts! {
            "entry" = Entry<'_> { key, value };
            "entries" = Entries<'_> { key, values };
            "requester" = Requester<'_> { username, uid, groups, extra, certificate_sha256 };
            "api-object" = ApiObject<'_> {
                group, version, kind, resource, subresource, namespace, name, operation, field_manager, options
            };
            "owner" = Owner<'_> { api_version, kind, name, uid, controller };
            "taint" = Taint<'_> { key, value, effect, added };
            "client-config" = ClientConfig<'_> { url, ca_sha256 };
            "claim" = Claim<'_> { name, value };
            "condition" = Condition<'_> { kind, status, reason, message, since };
            "cluster" = Cluster<'_> {
                name, uid, resource_version, generation, labels, annotations, finalizers, owners, created, deleting,
                accepted, lease_duration_seconds, taints, client_configs, claims, kubernetes_version, conditions, truncated,
                more
            };
            "key" = Key<'_> { algorithm, bits };
            "csr" = Csr<'_> {
                name, uid, resource_version, labels, annotations, signer, usages, lifetime_seconds, requester, created,
                unreadable, common_names, organizations, other_attributes, alternative_names, extensions, key,
                spki_sha256, signature, adds_condition, state, more
            };
            "row" = Row<'_> { namespace, name, values, complete };
            "table" = Table<'_> { name, revision, complete, rows };
            "request" = Request<'_> {
                id, operation, now, dry_run, attempt, stage, requester, creator, resource, cluster, previous, csr,
                object, previous_object, evidence, set_by_policies, obligations, more
            };
            "reason" = Reason { code, message, field };
            "new-taint" = NewTaint { key, value, effect };
            "obligation" = Obligation { name, within_seconds, params };
            "decision" = Decision { verdict, ask_again_seconds, reasons, warnings, edits, obligations, audit, more };
        }
    }

    /// Where this test runs, addresses have eight bytes; where policies run, four. The rules of the layout are the same.
    #[test]
    #[cfg(target_pointer_width = "64")]
    #[expect(clippy::disallowed_methods, reason = "the contract is a file")]
    fn the_layout_is_that_of_the_contract() {
        let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/policy.wit");
        let mut resolve = Resolve::default();
        resolve.push_str(wit, &std::fs::read_to_string(wit).unwrap()).unwrap();
        let mut sizes = SizeAlign::default();
        sizes.fill(&resolve);
        let mut ours = ours();
        let mut variants = Vec::new();
        for (id, definition) in resolve.types.iter() {
            let Some(name) = definition.name.as_deref() else { continue };
            let whole = wit_parser::Type::Id(id);
            let (whole, alignment) = (sizes.size(&whole).size_wasm64(), sizes.align(&whole).align_wasm64());
            match &definition.kind {
                TypeDefKind::Record(record) => {
                    let at = ours.iter().position(|(known, ..)| *known == name);
                    let (_, size, align, fields) = ours.swap_remove(at.unwrap_or_else(|| panic!("{name} is missing")));
                    let types = || record.fields.iter().map(|field| &field.ty);
                    let offsets = sizes.field_offsets(types());
                    let theirs: Vec<_> = record
                        .fields
                        .iter()
                        .zip(offsets)
                        .map(|(field, (offset, _))| (field.name.replace('-', "_"), offset.size_wasm64()))
                        .collect();
                    let fields: Vec<_> = fields.into_iter().map(|(name, offset)| (name.to_owned(), offset)).collect();
                    assert_eq!(fields, theirs, "{name}");
                    assert_eq!((size, align), (whole, alignment), "{name}");
                }
                TypeDefKind::Variant(variant) => {
                    let cases = || variant.cases.iter().map(|case| case.ty.as_ref());
                    let payload = sizes.payload_offset(variant.tag(), cases()).size_wasm64();
                    let names: Vec<_> = variant.cases.iter().map(|case| case.name.as_str()).collect();
                    variants.push((name, names, payload, whole, alignment));
                }
                TypeDefKind::Enum(list) => {
                    let cases: Vec<_> = list.cases.iter().map(|case| case.name.as_str()).collect();
                    let known = match name {
                        "verdict" => abi::Verdict::ALL.map(abi::Verdict::word).to_vec(),
                        other => panic!("{other} is missing"),
                    };
                    assert_eq!(known, cases, "{name}");
                }
                _ => {}
            }
        }
        assert!(ours.is_empty(), "the contract has no {ours:?}");
        let values = ["absent", "boolean", "integer", "text", "json", "texts"];
        let edits = [
            "set-label",
            "remove-label",
            "set-annotation",
            "remove-annotation",
            "add-taint",
            "remove-taint",
            "set-cluster-set",
            "set-lease-duration",
        ];
        let value = (offset_of!(Value<'_>, of), size_of::<Value<'_>>(), align_of::<Value<'_>>());
        let edit = (offset_of!(Edit, of), size_of::<Edit>(), align_of::<Edit>());
        assert_eq!(
            variants,
            [("value", values.to_vec(), value.0, value.1, value.2), ("edit", edits.to_vec(), edit.0, edit.1, edit.2)]
        );
    }

    /// What the host would write: `given` writes as it reads.
    #[test]
    fn parts_are_read_as_they_lie_there() {
        let entry = |key: &str, value: &str| pair((key.to_owned(), value.to_owned()));
        let text = |text: &str| Str::given(text.to_owned());
        let requester = Requester {
            username: text("u"),
            uid: Maybe::given(None),
            groups: List::given(vec![text("g"), text("")]),
            extra: List::given(vec![Entries { key: text("k"), values: List::given(vec![text("v")]) }]),
            certificate_sha256: Maybe::given(Some(text("00ff"))),
        };
        let other = Requester {
            username: text("other"),
            uid: Maybe::given(None),
            groups: List::given(Vec::new()),
            extra: List::given(Vec::new()),
            certificate_sha256: Maybe::given(None),
        };
        let value = |case, of| Value { case, of };
        let kept = |json: &str| ValueOf { text: std::mem::ManuallyDrop::new(text(json)) };
        let row = Row {
            namespace: Maybe::given(Some(text("ns"))),
            name: text("row"),
            values: List::given(vec![
                value(0, ValueOf { integer: 7 }),
                value(1, ValueOf { boolean: 1 }),
                value(2, ValueOf { integer: -5 }),
                value(3, kept("t")),
                value(4, kept("[1.5]")),
                value(5, ValueOf { texts: std::mem::ManuallyDrop::new(List::given(vec![text("a"), text("")])) }),
            ]),
            complete: 0,
        };
        let table = Table { name: text("clusters"), revision: text("9"), complete: 1, rows: List::given(vec![row]) };
        let cluster = Cluster {
            name: text("c"),
            uid: Maybe::given(None),
            resource_version: Maybe::given(Some(text("12"))),
            generation: Maybe::given(Some(3)),
            labels: List::given(vec![entry("a", "b")]),
            annotations: List::given(Vec::new()),
            finalizers: List::given(Vec::new()),
            owners: List::given(vec![Owner {
                api_version: text("v1"),
                kind: text("Namespace"),
                name: text("n"),
                uid: text("u-1"),
                controller: 1,
            }]),
            created: Maybe::given(Some(5)),
            deleting: 0,
            accepted: 1,
            lease_duration_seconds: Maybe::given(None),
            taints: List::given(vec![Taint {
                key: text("t"),
                value: text(""),
                effect: text("NoSelect"),
                added: Maybe::given(Some(8)),
            }]),
            client_configs: List::given(Vec::new()),
            claims: List::given(Vec::new()),
            kubernetes_version: Maybe::given(Some(text("v1.35.4"))),
            conditions: List::given(Vec::new()),
            truncated: List::given(vec![text("claims")]),
            more: List::given(vec![Fact { name: text("newer"), value: value(2, ValueOf { integer: 9 }) }]),
        };
        let records = Request {
            id: text("1"),
            operation: text("join"),
            now: 6,
            dry_run: 1,
            attempt: 2,
            stage: Maybe::given(Some(text("validating"))),
            requester,
            creator: Maybe::given(Some(other)),
            resource: Maybe::given(None),
            cluster: Maybe::given(Some(cluster)),
            previous: Maybe::given(None),
            csr: Maybe::given(None),
            object: Maybe::given(Some(text("{}"))),
            previous_object: Maybe::given(None),
            evidence: List::given(vec![table]),
            set_by_policies: List::given(vec![entry("/metadata/labels/a", "b")]),
            obligations: List::given(vec![text("expire-acceptance")]),
            more: List::given(Vec::new()),
        };
        let records: &'static Request<'static> = Box::leak(Box::new(records));
        let request = crate::Request::from(records);
        assert_eq!((request.id(), request.operation(), request.now()), ("1", abi::Operation::Join, 6));
        assert_eq!((request.is_dry_run(), request.attempt()), (true, 2));
        assert_eq!((request.object(), request.previous_object()), (Some("{}"), None));
        let requester = request.requester();
        assert_eq!((&*requester.username, &requester.uid, requester.groups.len()), ("u", &None, 2));
        assert_eq!(requester.extra.get("k").map(|values| &*values[0]), Some("v"));
        assert_eq!(requester.certificate_sha256.as_deref(), Some("00ff"));
        assert_eq!(request.creator().map(|creator| &*creator.username), Some("other"));
        assert_eq!(request.stage(), Some(abi::Stage::Validating));
        assert_eq!(request.set_by_policies().get("/metadata/labels/a").map(|value| &**value), Some("b"));
        assert!(request.knows_obligation("expire-acceptance") && !request.knows_obligation("other"));
        assert!(request.more().is_empty());
        let cluster = request.cluster().unwrap();
        assert_eq!((&*cluster.name, cluster.created, cluster.accepted), ("c", Some(5), true));
        assert_eq!(cluster.labels.get("a").map(|value| &**value), Some("b"));
        assert_eq!((cluster.resource_version.as_deref(), cluster.generation), (Some("12"), Some(3)));
        assert_eq!((&*cluster.owners[0].uid, cluster.owners[0].controller), ("u-1", true));
        assert_eq!((cluster.taints[0].added, cluster.kubernetes_version.as_deref()), (Some(8), Some("v1.35.4")));
        assert_eq!((&*cluster.truncated[0], cluster.more.get("newer")), ("claims", Some(&9.into())));
        assert_eq!((request.resource(), request.previous(), request.csr()), (None, None, None));
        let table = request.evidence("clusters").unwrap();
        assert_eq!((&*table.revision, table.complete), ("9", true));
        let row = &table.rows[0];
        assert_eq!((row.namespace.as_deref(), &*row.name, row.complete), (Some("ns"), "row", false));
        assert_eq!(serde_json::to_string(&row.values).unwrap(), r#"[null,true,-5,"t",[1.5],["a",""]]"#);
        assert_eq!(request.evidence("others"), None);
    }
}
