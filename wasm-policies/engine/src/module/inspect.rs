//! Inspecting a module without compiling it.

use ocm_policy_rules::PolicyError;
use serde::Serialize;

use crate::digest::digest;
use crate::module::kind::Kind;
use crate::module::sections::anatomy;
use crate::module::shape::{self, Shape, ShapeLimits};

/// What a module is, told from its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// Its kind.
    pub kind: Kind,
    /// SHA-256 over the module, lower-case hex.
    pub digest: String,
    /// How large it is.
    pub shape: Shape,
    /// What its top level imports, `<module>.<name>` or the name of an interface.
    pub imports: Vec<String>,
    /// What its top level exports.
    pub exports: Vec<String>,
}

/// Inspects a module.
///
/// # Errors
/// When it is not valid, too large, or of an unsupported type.
pub fn inspect(module: &[u8]) -> Result<Inspection, PolicyError> {
    let shape = shape::check(module, &ShapeLimits::default())?;
    let anatomy = anatomy(module)?;
    let import = |(module, name): &(&str, &str)| match *name {
        "" => (*module).to_owned(),
        name => format!("{module}.{name}"),
    };
    Ok(Inspection {
        kind: Kind::of(&anatomy)?,
        digest: digest(module),
        shape,
        imports: anatomy.imports.iter().map(import).collect(),
        exports: anatomy.exports.iter().map(|export| (*export).to_owned()).collect(),
    })
}
