//! Whether what a policy says of itself is within bounds: the host holds it as long as the policy is loaded, and looks for
//! what it asks to know with every request.

use ocm_policy_abi::{EvidenceSource, Manifest, Query};

use crate::error::PolicyError;
use crate::json::shorten;
use crate::syntax;
use crate::validate::Bounds;

/// Bytes of a manifest as JSON.
const MANIFEST_BYTES: usize = 64 << 10;
/// Bytes of the contract, of the version and of the name, which a title may stand for.
const NAME: usize = 253;
/// Bytes of the description.
const DESCRIPTION: usize = 4 << 10;
/// Queries.
const QUERIES: usize = 32;
/// Different sources of queries, each of which a hub follows.
const SOURCES: usize = 16;
/// Fields of one query.
const FIELDS: usize = 64;
/// Bytes of a field, of a selector and of each word of a source.
const WORD: usize = 1 << 10;

/// Reads a manifest as JSON, within the bounds of [`check_manifest`].
///
/// # Errors
/// [`PolicyError::Load`] where it is none, or more than manifests may be.
pub fn read_manifest(json: &[u8]) -> Result<Manifest, PolicyError> {
    at_most("bytes", json.len(), MANIFEST_BYTES)?;
    let manifest = serde_json::from_slice(json)
        .map_err(|error| PolicyError::Load(format!("its manifest cannot be read: {error}")))?;
    check_manifest(&manifest)?;
    Ok(manifest)
}

/// Checks the sizes of a manifest, wherever it came from, that no two of its queries have one name, and that its codes are
/// such as answers may give.
///
/// # Errors
/// [`PolicyError::Load`] with a sentence that says what is too much.
pub fn check_manifest(manifest: &Manifest) -> Result<(), PolicyError> {
    at_most("bytes in its contract", manifest.contract.len(), NAME)?;
    at_most("bytes in its name", manifest.name.len(), NAME)?;
    at_most("bytes in its version", manifest.version.len(), NAME)?;
    at_most("bytes in its description", manifest.description.len(), DESCRIPTION)?;
    at_most("queries for evidence", manifest.evidence.len(), QUERIES)?;
    let mut sources: Vec<&EvidenceSource> = Vec::new();
    for (index, query) in manifest.evidence.iter().enumerate() {
        check_query(query)?;
        if manifest.evidence[..index].iter().any(|other| other.name == query.name) {
            return Err(PolicyError::Load(format!("two queries of its manifest have the name {:?}", query.name)));
        }
        if !sources.contains(&&query.source) {
            sources.push(&query.source);
        }
    }
    at_most("different sources of evidence", sources.len(), SOURCES)?;
    for reason in &manifest.reasons {
        at_most("characters in the code of a reason", reason.code.len(), Bounds::default().code)?;
        if !syntax::is_code(&reason.code) {
            return Err(PolicyError::Load(format!(
                "the code of a reason in its manifest, {:?}, is not in CamelCase, such as NameTaken",
                shorten(&reason.code, NAME)
            )));
        }
    }
    // Whatever else is in it, such as the schema of its settings.
    let json = serde_json::to_vec(manifest)
        .map_err(|error| PolicyError::Load(format!("its manifest cannot be written as JSON: {error}")))?;
    at_most("bytes", json.len(), MANIFEST_BYTES)
}

fn check_query(query: &Query) -> Result<(), PolicyError> {
    at_most("bytes in the name of a query", query.name.len(), NAME)?;
    at_most("fields in a query", query.fields.len(), FIELDS)?;
    let pointers = query.fields.iter().chain(&query.cluster_field).chain(&query.user_field);
    for field in pointers {
        at_most("bytes in a field of a query", field.len(), WORD)?;
    }
    at_most("bytes in the selector of a query", query.selector.as_ref().map_or(0, String::len), WORD)?;
    let words: [Option<&String>; 3] = match &query.source {
        EvidenceSource::ConfigMap { namespace, name } => [Some(namespace), Some(name), None],
        EvidenceSource::Objects { api_version, resource, namespace } => {
            [Some(api_version), Some(resource), namespace.as_ref()]
        }
        _ => [None; 3],
    };
    words.into_iter().flatten().try_for_each(|word| at_most("bytes in the source of a query", word.len(), WORD))
}

fn at_most(what: &str, found: usize, allowed: usize) -> Result<(), PolicyError> {
    if found <= allowed {
        return Ok(());
    }
    Err(PolicyError::Load(format!("its manifest is larger than it may be: {found} {what}, {allowed} allowed")))
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::ReasonDoc;

    use super::*;

    fn full() -> Manifest {
        let source = |index: usize| EvidenceSource::Objects {
            api_version: "v1".to_owned(),
            resource: format!("r{}", index % SOURCES),
            namespace: None,
        };
        let queries = (0..QUERIES).map(|index| Query::new(format!("q{index}"), source(index), ["/a"; FIELDS]));
        Manifest {
            name: "n".repeat(NAME),
            version: "v".repeat(NAME),
            description: "d".repeat(DESCRIPTION),
            reasons: vec![ReasonDoc { code: "C".repeat(Bounds::default().code), description: String::new() }],
            evidence: queries.collect(),
            ..Manifest::default()
        }
    }

    #[test]
    fn bounds_are_kept_to_the_last_one() {
        assert_eq!(check_manifest(&full()), Ok(()));
        for (spoil, why) in [
            ((|m| m.name.push('n')) as fn(&mut Manifest), "254 bytes in its name, 253 allowed"),
            (|m| m.version.push('v'), "254 bytes in its version"),
            (|m| m.description.push('d'), "4097 bytes in its description"),
            (|m| m.evidence.push(m.evidence[0].clone()), "33 queries for evidence, 32 allowed"),
            (|m| m.evidence[1].name = "q0".to_owned(), r#"two queries of its manifest have the name "q0""#),
            (|m| m.evidence[0].source = EvidenceSource::Clusters, "17 different sources of evidence, 16 allowed"),
            (|m| m.evidence[0].name = "q".repeat(254), "bytes in the name of a query"),
            (|m| m.evidence[0].fields.push("/b".to_owned()), "65 fields in a query"),
            (|m| m.evidence[0].fields[0] = "/".repeat(1025), "1025 bytes in a field of a query"),
            (|m| m.evidence[0].cluster_field = Some("/".repeat(1025)), "1025 bytes in a field of a query"),
            (|m| m.evidence[0].selector = Some("s".repeat(1025)), "bytes in the selector of a query"),
            (
                |m| {
                    m.evidence[0].source =
                        EvidenceSource::ConfigMap { namespace: "n".repeat(1025), name: String::new() }
                },
                "bytes in the source of a query",
            ),
            (|m| m.reasons[0].code.push('c'), "65 characters in the code of a reason, 64 allowed"),
            (|m| m.reasons[0].code = "no-owner".to_owned(), r#""no-owner", is not in CamelCase, such as NameTaken"#),
            (|m| m.reasons[0].code.clear(), "is not in CamelCase"),
            (|m| m.settings_schema = Some("s".repeat(MANIFEST_BYTES).into()), "bytes, 65536 allowed"),
        ] {
            let mut spoilt = full();
            spoil(&mut spoilt);
            match check_manifest(&spoilt) {
                Err(PolicyError::Load(said)) => assert!(said.contains(why) && said.len() < 512, "{said}"),
                other => panic!("{why}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_not_read() {
        let json = serde_json::to_string(&Manifest::default()).unwrap();
        let padded = |bytes: usize| json.clone() + &" ".repeat(bytes - json.len());
        assert_eq!(read_manifest(padded(MANIFEST_BYTES).as_bytes()), Ok(Manifest::default()));
        let refused = PolicyError::Load("its manifest is larger than it may be: 65537 bytes, 65536 allowed".to_owned());
        assert_eq!(read_manifest(padded(MANIFEST_BYTES + 1).as_bytes()), Err(refused));
        assert!(read_manifest(b"{]").unwrap_err().to_string().contains("its manifest cannot be read"));
    }
}
