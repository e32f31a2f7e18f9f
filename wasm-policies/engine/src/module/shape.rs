//! How large a module may be before anybody compiles it: compilation cannot be stopped by fuel.

use serde::Serialize;
use wasmparser::{Parser, Payload, Validator, WasmFeatures};

use ocm_policy_rules::PolicyError;

/// What a module may have.
#[derive(Clone, Copy, Debug)]
pub struct ShapeLimits {
    /// Bytes of the whole module.
    pub bytes: usize,
    /// Functions.
    pub functions: usize,
    /// Bytes of the body of one function: compile time grows faster than that.
    pub function_bytes: usize,
    /// Imports.
    pub imports: usize,
    /// Memories.
    pub memories: usize,
    /// Nested modules and components.
    pub nested: usize,
}

impl Default for ShapeLimits {
    fn default() -> Self {
        // Interpreters of other languages are modules of twenty megabytes with tens of thousands of functions.
        Self { bytes: 40 << 20, functions: 100_000, function_bytes: 512 << 10, imports: 256, memories: 8, nested: 64 }
    }
}

/// What a module has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shape {
    /// Bytes of the whole module.
    pub bytes: usize,
    /// Functions with a body.
    pub functions: usize,
    /// Bytes of the longest body.
    pub longest_function: usize,
    /// Bytes of all bodies.
    pub code_bytes: usize,
    /// Imports of all nested modules.
    pub imports: usize,
    /// Memories of all nested modules.
    pub memories: usize,
    /// Nested modules and components.
    pub nested: usize,
}

/// Measures a module and validates it.
///
/// # Errors
/// When it is not valid, or larger in some way than it may be.
pub(crate) fn check(module: &[u8], limits: &ShapeLimits) -> Result<Shape, PolicyError> {
    let too_much = |what: &str, has: usize, may: usize| {
        Err(PolicyError::Load(format!(
            "the module is refused before it is compiled: it has {has} {what}, and {may} are allowed"
        )))
    };
    if module.len() > limits.bytes {
        return too_much("bytes", module.len(), limits.bytes);
    }
    let mut shape = Shape { bytes: module.len(), ..Shape::default() };
    let broken =
        |error: &wasmparser::BinaryReaderError| PolicyError::Load(format!("this is no WebAssembly module: {error}"));
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(|error| broken(&error))? {
            Payload::CodeSectionEntry(body) => {
                let size = body.range().len();
                shape.functions += 1;
                shape.code_bytes += size;
                shape.longest_function = shape.longest_function.max(size);
            }
            Payload::ImportSection(imports) => shape.imports += imports.count() as usize,
            Payload::MemorySection(memories) => shape.memories += memories.count() as usize,
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => shape.nested += 1,
            _ => {}
        }
        for (what, has, may) in [
            ("functions", shape.functions, limits.functions),
            ("bytes in one function", shape.longest_function, limits.function_bytes),
            ("imports", shape.imports, limits.imports),
            ("memories", shape.memories, limits.memories),
            ("nested modules", shape.nested, limits.nested),
        ] {
            if has > may {
                return too_much(what, has, may);
            }
        }
    }
    let features = WasmFeatures::default();
    Validator::new_with_features(features).validate_all(module).map_err(|error| broken(&error))?;
    Ok(shape)
}
