//! Writes how a type is read of JSON, member by member: `#[derive(Member)]`, which `ocm_api::member` describes.

mod input;
mod output;

use proc_macro::TokenStream;

/// Implements `ocm_api::member::Member` and `serde::Deserialize` for a structure or an enumeration, by the same attributes
/// `#[serde(…)]` as serde. An attribute that it does not know does not compile.
#[proc_macro_derive(Member, attributes(serde))]
pub fn member(item: TokenStream) -> TokenStream {
    let written = input::Item::read(item).and_then(|item| output::write(&item));
    let text = written.unwrap_or_else(|error| format!("::core::compile_error!({error:?});"));
    text.parse().unwrap_or_else(|error| panic!("this is not Rust: {error}: {text}"))
}
