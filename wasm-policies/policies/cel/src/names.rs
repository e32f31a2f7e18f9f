//! Which names an expression takes for known, and what it looks at.

use std::collections::{BTreeMap, BTreeSet};

use cel::common::ast::{EntryExpr, Expr, IdedExpr};

/// The types of the language, which expressions compare with `type()`.
const TYPES: [&str; 12] =
    ["bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "string", "timestamp", "type", "uint"];

/// A name that is neither known nor made by a macro of the expression itself.
pub(crate) fn unknown<'a>(expression: &'a IdedExpr, known: &[&'a str]) -> Option<&'a str> {
    let within = |part: &'a IdedExpr| unknown(part, known);
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) => None,
        Expr::Ident(name) => {
            (!known.contains(&name.as_str()) && !TYPES.contains(&name.as_str())).then_some(name.as_str())
        }
        Expr::Select(select) => within(&select.operand),
        Expr::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).find_map(within),
        Expr::List(list) => list.elements.iter().find_map(within),
        Expr::Map(map) => map.entries.iter().find_map(|entry| of_entry(&entry.expr, known)),
        Expr::Struct(made) => made.entries.iter().find_map(|entry| of_entry(&entry.expr, known)),
        Expr::Comprehension(all) => {
            let mut inside = known.to_vec();
            inside.extend([all.iter_var.as_str(), all.accu_var.as_str()]);
            inside.extend(all.iter_var2.as_deref());
            [&all.iter_range, &all.accu_init].into_iter().find_map(within).or_else(|| {
                [&all.loop_cond, &all.loop_step, &all.result].into_iter().find_map(|part| unknown(part, &inside))
            })
        }
    }
}

fn of_entry<'a>(entry: &'a EntryExpr, known: &[&'a str]) -> Option<&'a str> {
    match entry {
        EntryExpr::StructField(field) => unknown(&field.value, known),
        EntryExpr::MapEntry(entry) => unknown(&entry.key, known).or_else(|| unknown(&entry.value, known)),
    }
}

/// Which members of a variable expressions look at.
#[derive(Debug, Default)]
pub(crate) struct Members {
    some: BTreeMap<String, Parts>,
    /// They look at the variable as a whole.
    all: bool,
}

/// Which parts of a member expressions look at.
#[derive(Debug, Default)]
struct Parts {
    some: BTreeSet<String>,
    /// They look at the member as a whole.
    all: bool,
}

impl Members {
    /// Adds those that an expression looks at.
    pub(crate) fn add(&mut self, expression: &IdedExpr, variable: &str) {
        let mut within = |part: &IdedExpr| self.add(part, variable);
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => self.all |= name == variable,
            Expr::Select(select) => match &select.operand.expr {
                // `has` only tells whether it is there.
                Expr::Ident(name) if name == variable => {
                    self.some.entry(select.field.clone()).or_default().all |= !select.test
                }
                Expr::Select(outer) if matches!(&outer.operand.expr, Expr::Ident(name) if name == variable) => {
                    self.some.entry(outer.field.clone()).or_default().some.insert(select.field.clone());
                }
                _ => within(&select.operand),
            },
            Expr::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).for_each(within),
            Expr::List(list) => list.elements.iter().for_each(within),
            Expr::Map(map) => map.entries.iter().flat_map(|entry| parts(&entry.expr)).for_each(within),
            Expr::Struct(made) => made.entries.iter().flat_map(|entry| parts(&entry.expr)).for_each(within),
            Expr::Comprehension(all) => {
                [&all.iter_range, &all.accu_init, &all.loop_cond, &all.loop_step, &all.result]
                    .into_iter()
                    .for_each(within);
            }
        }
    }

    /// Whether one of them looks at this one.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all || self.some.contains_key(name)
    }

    /// Whether one of them looks at this part of this member.
    pub(crate) fn has_part(&self, name: &str, part: &str) -> bool {
        self.all || self.some.get(name).is_some_and(|parts| parts.all || parts.some.contains(part))
    }
}

fn parts(entry: &EntryExpr) -> impl Iterator<Item = &IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => [Some(&field.value), None],
        EntryExpr::MapEntry(entry) => [Some(&entry.key), Some(&entry.value)],
    }
    .into_iter()
    .flatten()
}
