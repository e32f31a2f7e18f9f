//! Which names an expression takes for known.

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
