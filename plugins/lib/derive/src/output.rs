//! The readers, as text of Rust.

use std::fmt::Write as _;

use crate::input::{Attributes, Body, Content, Field, Item, Variant};

/// The attributes that say something of a structure, an enumeration, a member and a variant.
const STRUCTURE: &[&str] = &["rename_all", "default", "deny_unknown_fields"];
const ENUMERATION: &[&str] = &["rename_all"];
const FIELD: &[&str] = &["rename", "default", "deserialize_with", "with", "skip"];
const VARIANT: &[&str] = &["rename", "rename_all", "other"];

/// Both implementations of a type.
pub(crate) fn write(item: &Item) -> Result<String, String> {
    let Item { name, parameters, attributes, body } = item;
    attributes.only_for(name, if matches!(body, Body::Structure(_)) { STRUCTURE } else { ENUMERATION })?;
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
        of_field.only_for(name, FIELD)?;
        if of_field.is_skipped {
            _ = write!(body, "r#{name}: ::core::default::Default::default(),");
            continue;
        }
        let on_wire = match &of_field.rename {
            Some(name) => name.clone(),
            None => field_name(name, attributes.rename_all.as_deref())?,
        };
        if let Some(instead) = &of_field.read_as {
            of_field.only_for(name, &["rename", "with"])?;
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
    // After an error the reader goes on with a variant that holds nothing, if there is one: what it holds might hold it again.
    let is_unit = |variant: &Variant| matches!(variant.content, Content::Unit);
    let instead = variants.iter().position(is_unit).unwrap_or(variants.len().saturating_sub(1));
    let (mut arms, mut last) = (String::new(), String::new());
    for (index, variant) in variants.iter().enumerate() {
        let pattern = if index == instead { "_".to_owned() } else { index.to_string() };
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
        let to = if index == instead { &mut last } else { &mut arms };
        _ = write!(to, "{pattern} => {{ let read = {{ {arm} }}; reader.leave_variant(is_object); read }}");
    }
    Ok(format!(
        "let (variant, value, is_object) = reader.enter_variant(value, &{words:?});
        match variant {{ {arms} {last} }}"
    ))
}

fn variant_names(attributes: &Attributes, variants: &[Variant]) -> Result<Vec<String>, String> {
    let named = |variant: &Variant| {
        variant.attributes.only_for(&variant.name, VARIANT)?;
        match &variant.attributes.rename {
            Some(name) => Ok(name.clone()),
            None => variant_name(&variant.name, attributes.rename_all.as_deref()),
        }
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
    fn an_attribute_that_says_nothing_of_what_has_it_is_refused() {
        let closed = Attributes { is_closed: true, ..Attributes::default() };
        assert_eq!(closed.only_for("A", STRUCTURE), Ok(()));
        let said = closed.only_for("A", ENUMERATION);
        assert_eq!(said, Err("serde(deny_unknown_fields) of A says nothing to Member here".to_owned()));
        let skipped = Attributes { is_skipped: true, ..Attributes::default() };
        assert!(skipped.only_for("A", FIELD).is_ok() && skipped.only_for("A", VARIANT).is_err());
        let default = Attributes { default: Some(None), ..Attributes::default() };
        assert!(default.only_for("A", STRUCTURE).is_ok() && default.only_for("A", ENUMERATION).is_err());
    }

    #[test]
    fn after_an_error_a_variant_that_holds_nothing_is_read() {
        let variant =
            |name: &str, content| Variant { name: name.to_owned(), attributes: Attributes::default(), content };
        let variants = [variant("None", Content::Unit), variant("Not", Content::Newtype)];
        let written = tagged("E", &Attributes::default(), &variants).expect("it is read");
        assert!(written.contains("1 => ") && !written.contains("0 => "), "{written}");
        let (_, last) = written.split_once("_ => ").expect("there is one for all others");
        assert!(last.contains("Self::None") && !last.contains("Self::Not"), "{written}");
    }

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
