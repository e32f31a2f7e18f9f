//! The readers, as text of Rust.

use std::fmt::Write as _;

use crate::input::{Attributes, Body, Content, Field, Item, Variant};

/// Both implementations of a type.
pub(crate) fn write(item: &Item) -> Result<String, String> {
    let Item { name, parameters, attributes, body } = item;
    let body = match body {
        Body::Structure(fields) => structure(name, attributes, fields)?,
        Body::Enumeration(variants) if variants.iter().all(|variant| matches!(variant.content, Content::Unit)) => {
            words(name, attributes, variants)?
        }
        Body::Enumeration(variants) => tagged(name, attributes, variants)?,
    };
    let of = if parameters.is_empty() { String::new() } else { format!("<{}>", parameters.join(", ")) };
    let bounded: Vec<_> = parameters.iter().map(|name| format!("{name}: ::ocm_api::member::Member")).collect();
    let bounds = if bounded.is_empty() { String::new() } else { format!("<{}>", bounded.join(", ")) };
    let with_lifetime = ["'de".to_owned()].into_iter().chain(bounded).collect::<Vec<_>>().join(", ");
    Ok(format!(
        "#[automatically_derived]
        impl{bounds} ::ocm_api::member::Member for {name}{of} {{
            fn read(
                value: ::core::option::Option<::ocm_api::member::Value>,
                reader: &mut ::ocm_api::member::Reader,
            ) -> Self {{ {body} }}
        }}
        #[automatically_derived]
        impl<{with_lifetime}> ::ocm_api::member::serde::Deserialize<'de> for {name}{of} {{
            fn deserialize<D: ::ocm_api::member::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {{ ::ocm_api::member::deserialize(deserializer) }}
        }}"
    ))
}

fn structure(name: &str, attributes: &Attributes, fields: &[Field]) -> Result<String, String> {
    let mut body = String::new();
    match &attributes.default {
        None => {}
        Some(None) => body.push_str("let default = <Self as ::core::default::Default>::default();"),
        Some(Some(path)) => _ = write!(body, "let default: Self = {path}();"),
    }
    let expected = format!("struct {name}");
    body.push_str(&members("Self", &expected, attributes, fields)?);
    Ok(body)
}

/// A structure, or the content of a variant, of `value`.
fn members(what: &str, expected: &str, attributes: &Attributes, fields: &[Field]) -> Result<String, String> {
    let mut names = Vec::new();
    let mut body = String::new();
    for field in fields {
        let Field { name, is_option, attributes: of_field } = field;
        if of_field.is_skipped {
            _ = write!(body, "r#{name}: ::core::default::Default::default(),");
            continue;
        }
        let on_wire = match &of_field.rename {
            Some(name) => name.clone(),
            None => field_name(name, attributes.rename_all.as_deref())?,
        };
        if let Some(instead) = &of_field.read_as {
            _ = write!(body, "r#{name}: members.member::<{instead}>({on_wire:?}).into(),");
            names.push(on_wire);
            continue;
        }
        let call = match (&of_field.read_with, &of_field.default, &attributes.default) {
            (Some(path), Some(None), _) => format!("read_with({on_wire:?}, {path})"),
            (Some(_), ..) => return Err(format!("{name} needs a default")),
            (None, Some(Some(path)), _) => format!("or_else({on_wire:?}, {path})"),
            (None, None, Some(_)) => format!("or({on_wire:?}, default.r#{name})"),
            // A missing `Option` is none anyhow, and the fewer functions the better.
            (None, Some(None), _) if !is_option => format!("or_default({on_wire:?})"),
            (None, ..) => format!("member({on_wire:?})"),
        };
        _ = write!(body, "r#{name}: members.{call},");
        names.push(on_wire);
    }
    let closed = if attributes.is_closed { format!("members.refuse_others(&{names:?});") } else { String::new() };
    Ok(format!("let mut members = reader.members(value, {expected:?}); {closed} {what} {{ {body} }}"))
}

/// An enumeration of words.
fn words(name: &str, attributes: &Attributes, variants: &[Variant]) -> Result<String, String> {
    let (last, named) = variants.split_last().ok_or_else(|| format!("{name} has no variants"))?;
    // What a word that is not in the list becomes is the last arm.
    let (words, method) = match last.attributes.is_other {
        true => (variant_names(attributes, named)?, "word_or_other"),
        false => (variant_names(attributes, variants)?, "word"),
    };
    if named.iter().any(|variant| variant.attributes.is_other) {
        return Err(format!("the variant of {name} for other words must be the last one"));
    }
    let mut arms = String::new();
    for (index, variant) in named.iter().enumerate() {
        _ = write!(arms, "{index} => Self::{},", variant.name);
    }
    Ok(format!("match reader.{method}(value, &{words:?}) {{ {arms} _ => Self::{} }}", last.name))
}

/// An enumeration whose variants hold something.
fn tagged(name: &str, attributes: &Attributes, variants: &[Variant]) -> Result<String, String> {
    if variants.iter().any(|variant| variant.attributes.is_other) {
        return Err(format!("{name} holds something, and so can have no variant for other words"));
    }
    let words = variant_names(attributes, variants)?;
    let mut arms = String::new();
    for (index, variant) in variants.iter().enumerate() {
        let pattern = if index + 1 == variants.len() { "_".to_owned() } else { index.to_string() };
        let path = format!("Self::{}", variant.name);
        let arm = match &variant.content {
            Content::Unit => format!("reader.nothing(value); {path}"),
            Content::Newtype => {
                format!("let value = reader.content(value); {path}(::ocm_api::member::Member::read(value, reader))")
            }
            Content::Members(fields) => {
                format!(
                    "let value = reader.content(value); {}",
                    members(&path, "struct variant", &variant.attributes, fields)?
                )
            }
        };
        _ = write!(arms, "{pattern} => {{ let read = {{ {arm} }}; reader.leave_variant(is_object); read }}");
    }
    Ok(format!(
        "let (variant, value, is_object) = reader.enter_variant(value, &{words:?});
        match variant {{ {arms} }}"
    ))
}

fn variant_names(attributes: &Attributes, variants: &[Variant]) -> Result<Vec<String>, String> {
    let named = |variant: &Variant| match &variant.attributes.rename {
        Some(name) => Ok(name.clone()),
        None => variant_name(&variant.name, attributes.rename_all.as_deref()),
    };
    variants.iter().map(named).collect()
}

/// The name of a member, which is written in `snake_case`.
fn field_name(name: &str, rule: Option<&str>) -> Result<String, String> {
    let pascal = || name.split('_').map(capitalized).collect::<String>();
    match rule {
        None | Some("snake_case" | "lowercase") => Ok(name.to_owned()),
        Some("camelCase") => Ok(uncapitalized(&pascal())),
        Some("PascalCase") => Ok(pascal()),
        Some("kebab-case") => Ok(name.replace('_', "-")),
        Some(other) => Err(format!("rename_all = {other} is unknown")),
    }
}

/// The name of a variant, which is written in `PascalCase`.
fn variant_name(name: &str, rule: Option<&str>) -> Result<String, String> {
    let parted = |sign: char| {
        let mut parted = String::new();
        for (index, letter) in name.char_indices() {
            if index > 0 && letter.is_uppercase() {
                parted.push(sign);
            }
            parted.push(letter.to_ascii_lowercase());
        }
        parted
    };
    match rule {
        None | Some("PascalCase") => Ok(name.to_owned()),
        Some("camelCase") => Ok(uncapitalized(name)),
        Some("lowercase") => Ok(name.to_ascii_lowercase()),
        Some("kebab-case") => Ok(parted('-')),
        Some("snake_case") => Ok(parted('_')),
        Some(other) => Err(format!("rename_all = {other} is unknown")),
    }
}

fn capitalized(word: &str) -> String {
    word[..1.min(word.len())].to_ascii_uppercase() + word.get(1..).unwrap_or_default()
}

fn uncapitalized(word: &str) -> String {
    word[..1.min(word.len())].to_ascii_lowercase() + word.get(1..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_serde() {
        let member = |rule| field_name("expires_at_sha256", Some(rule)).expect("the rule is known");
        assert_eq!(member("camelCase"), "expiresAtSha256");
        assert_eq!(member("PascalCase"), "ExpiresAtSha256");
        assert_eq!(member("kebab-case"), "expires-at-sha256");
        assert_eq!(member("lowercase"), "expires_at_sha256");
        assert_eq!(field_name("type_", Some("camelCase")), Ok("type".to_owned()));
        let variant = |rule| variant_name("NotAsked", Some(rule)).expect("the rule is known");
        assert_eq!(variant("camelCase"), "notAsked");
        assert_eq!(variant("PascalCase"), "NotAsked");
        assert_eq!(variant("kebab-case"), "not-asked");
        assert_eq!(variant("snake_case"), "not_asked");
        assert_eq!(variant("lowercase"), "notasked");
        assert!(field_name("a", Some("UPPERCASE")).is_err() && variant_name("A", Some("UPPERCASE")).is_err());
    }
}
