//! What is only needed to configure a policy is not compiled.
//!
//! Once the settings are part of a module nobody calls `describe` and `configure` again, and of most policies the parser
//! of their settings is the larger part. The bodies of functions that nothing else reaches are replaced by one
//! instruction that traps, in place, so that nothing else in the module moves.

use std::ops::Range;

use ocm_policy_abi::INTERFACE;
use wasmparser::{BinaryReaderError, ElementItems, Encoding, ExternalKind, FunctionBody, Operator, Parser, Payload};

/// One core module, as far as it matters.
#[derive(Default)]
struct Module<'a> {
    imported: u32,
    bodies: Vec<FunctionBody<'a>>,
    /// What is called from outside, the two functions that are over excepted.
    roots: Vec<u32>,
    /// What stands in tables, or may be put there.
    referenced: Vec<u32>,
    /// How many of `describe`, `configure` and `decide` it exports.
    of_ours: usize,
}

/// Replaces what is over in the one module of a component that exports the functions of the contract. A component that
/// is built in another way stays as it is.
pub(crate) fn prune(component: &mut [u8]) {
    let idle = idle(component).unwrap_or_default();
    for body in idle {
        if let [no_locals, first, rest @ .., _end] = &mut component[body] {
            const UNREACHABLE: u8 = 0x00;
            const NOP: u8 = 0x01;
            *no_locals = 0;
            *first = UNREACHABLE;
            rest.fill(NOP);
        }
    }
}

/// Where the bodies of functions lie that are over.
fn idle(component: &[u8]) -> Result<Vec<Range<usize>>, BinaryReaderError> {
    let mut ours = None;
    for module in modules(component)? {
        if module.of_ours == 3 && ours.replace(module).is_some() {
            return Ok(Vec::new());
        }
    }
    let Some(module) = ours else { return Ok(Vec::new()) };
    let used = module.used()?;
    let idle = module.bodies.iter().zip(used).filter(|(_, used)| !used);
    Ok(idle.map(|(body, _)| body.range()).collect())
}

fn modules(component: &[u8]) -> Result<Vec<Module<'_>>, BinaryReaderError> {
    let mut done = Vec::new();
    // Modules do not lie in each other, but components do, and modules in them.
    let mut open: Vec<Option<Module<'_>>> = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        match payload {
            Payload::Version { encoding, .. } => {
                open.push((encoding == Encoding::Module).then(Module::default));
                continue;
            }
            Payload::End(_) => {
                done.extend(open.pop().flatten());
                continue;
            }
            _ => {}
        }
        if let Some(Some(module)) = open.last_mut() {
            module.take(payload)?;
        }
    }
    Ok(done)
}

impl<'a> Module<'a> {
    fn take(&mut self, payload: Payload<'a>) -> Result<(), BinaryReaderError> {
        match payload {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    self.imported += u32::from(matches!(import?.ty, wasmparser::TypeRef::Func(_)));
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    let function = export.name.strip_prefix(INTERFACE).and_then(|name| name.strip_prefix('#'));
                    self.of_ours += usize::from(matches!(function, Some("describe" | "configure" | "decide")));
                    let over = matches!(function, Some("describe" | "configure"));
                    if matches!(export.kind, ExternalKind::Func) && !over {
                        self.roots.push(export.index);
                    }
                }
            }
            Payload::StartSection { func, .. } => self.roots.push(func),
            Payload::GlobalSection(globals) => {
                for global in globals {
                    self.refer(global?.init_expr.get_operators_reader().into_iter())?;
                }
            }
            Payload::ElementSection(elements) => {
                for element in elements {
                    match element?.items {
                        ElementItems::Functions(functions) => {
                            for function in functions {
                                self.referenced.push(function?);
                            }
                        }
                        ElementItems::Expressions(_, expressions) => {
                            for expression in expressions {
                                self.refer(expression?.get_operators_reader().into_iter())?;
                            }
                        }
                    }
                }
            }
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            _ => {}
        }
        Ok(())
    }

    fn refer(
        &mut self,
        operators: impl Iterator<Item = Result<Operator<'a>, BinaryReaderError>>,
    ) -> Result<(), BinaryReaderError> {
        for operator in operators {
            if let Operator::RefFunc { function_index } = operator? {
                self.referenced.push(function_index);
            }
        }
        Ok(())
    }

    /// Which bodies something may still reach.
    fn used(&self) -> Result<Vec<bool>, BinaryReaderError> {
        let mut used = vec![false; self.bodies.len()];
        let mut waiting = self.roots.clone();
        let mut through_tables = false;
        while let Some(function) = waiting.pop() {
            let Some(at) = function.checked_sub(self.imported).map(|at| at as usize) else { continue };
            if used.get(at).is_none_or(|used| *used) {
                continue;
            }
            used[at] = true;
            for operator in self.bodies[at].get_operators_reader()? {
                match operator? {
                    Operator::Call { function_index }
                    | Operator::ReturnCall { function_index }
                    | Operator::RefFunc { function_index } => waiting.push(function_index),
                    // Whoever looks into a table may find anything that can come into one.
                    Operator::CallIndirect { .. } | Operator::ReturnCallIndirect { .. } | Operator::TableGet { .. }
                        if !through_tables =>
                    {
                        through_tables = true;
                        waiting.extend(&self.referenced);
                    }
                    _ => {}
                }
            }
        }
        Ok(used)
    }
}
