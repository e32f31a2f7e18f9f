//! From a core module of our contract to a component.

use ocm_policy_rules::PolicyError;
use wit_component::ComponentEncoder;

/// The contract as `wasm-policies/wit` states it, in the encoding that modules carry in a custom section.
pub(crate) const WORLD: &[u8] = include_bytes!("../../../sdk/src/world.bin");

/// The name of the section; modules made with our SDK have it, and others get it.
pub(crate) const SECTION: &str = "component-type:ocm:policy@0.1.0:gate:sdk";

/// Makes a component of a core module that exports the functions of our contract.
///
/// # Errors
/// When its exports do not fit the contract, or it imports anything.
pub fn componentize(module: &[u8]) -> Result<Vec<u8>, PolicyError> {
    let refused =
        |error: &dyn std::fmt::Display| PolicyError::Load(format!("this module cannot be made a component: {error}"));
    let has_world = wasmparser::Parser::new(0).parse_all(module).flatten().any(|payload| {
        matches!(payload, wasmparser::Payload::CustomSection(section) if section.name().starts_with("component-type"))
    });
    let mut with_world;
    let module = if has_world {
        module
    } else {
        with_world = module.to_vec();
        let mut body = Vec::new();
        leb128(&mut body, SECTION.len());
        body.extend_from_slice(SECTION.as_bytes());
        body.extend_from_slice(WORLD);
        with_world.push(0);
        leb128(&mut with_world, body.len());
        with_world.extend_from_slice(&body);
        &with_world
    };
    let encoder = ComponentEncoder::default().validate(true).module(module);
    encoder.and_then(|mut encoder| encoder.encode()).map_err(|error| refused(&format_args!("{error:#}")))
}

fn leb128(bytes: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE_WORLD=1 cargo test -p ocm-policy-engine componentize` writes the file anew.
    #[test]
    fn the_encoded_world_is_that_of_the_wit() {
        let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/policy.wit");
        let mut resolve = wit_parser::Resolve::default();
        let package = resolve.push_str(wit, &std::fs::read_to_string(wit).unwrap()).unwrap();
        let world = resolve.select_world(&[package], Some("gate")).unwrap();
        let encoded =
            wit_component::metadata::encode(&resolve, world, wit_component::StringEncoding::UTF8, None).unwrap();
        if std::env::var_os("UPDATE_WORLD").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk/src/world.bin"), &encoded).unwrap();
            return;
        }
        assert!(encoded == WORLD, "wasm-policies/sdk/src/world.bin is stale: run this test with UPDATE_WORLD=1");
    }
}
