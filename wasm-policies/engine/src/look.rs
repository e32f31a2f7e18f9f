//! Looking at a module without compiling it.

use ocm_policy_rules::outcome::Fault;
use serde::Serialize;

use crate::compile::digest;
use crate::kind::{Kind, anatomy};
use crate::shape::{self, Shape, ShapeLimits};

/// What a module is, told from its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Look {
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

impl Look {
    /// Looks at a module.
    ///
    /// # Errors
    /// When it is not valid, too large, or of no kind that decides.
    pub fn at(module: &[u8]) -> Result<Self, Fault> {
        let shape = shape::check(module, &ShapeLimits::default())?;
        let anatomy = anatomy(module)?;
        let import = |(module, name): &(&str, &str)| match *name {
            "" => (*module).to_owned(),
            name => format!("{module}.{name}"),
        };
        Ok(Self {
            kind: anatomy.kind()?,
            digest: digest(module),
            shape,
            imports: anatomy.imports.iter().map(import).collect(),
            exports: anatomy.exports.iter().map(|export| (*export).to_owned()).collect(),
        })
    }
}
