//! What is written of a type: its attributes for serde, and its members or variants.

use std::iter::Peekable;

use proc_macro::token_stream::IntoIter;
use proc_macro::{Delimiter, TokenStream, TokenTree};

type Result<T> = std::result::Result<T, String>;

type Tokens = Peekable<IntoIter>;

/// A type.
pub(crate) struct Item {
    /// Its name.
    pub name: String,
    /// The names of its parameters; each is a type that is read, too.
    pub parameters: Vec<String>,
    /// What `#[serde(…)]` says of it.
    pub attributes: Attributes,
    /// What it is.
    pub body: Body,
}

/// What a type is.
pub(crate) enum Body {
    /// A structure.
    Structure(Vec<Field>),
    /// An enumeration.
    Enumeration(Vec<Variant>),
}

/// A member.
pub(crate) struct Field {
    /// Its name in Rust, without `r#`.
    pub name: String,
    /// Whether its type is an `Option`.
    pub is_option: bool,
    /// What `#[serde(…)]` says of it.
    pub attributes: Attributes,
}

/// A variant of an enumeration.
pub(crate) struct Variant {
    /// Its name in Rust.
    pub name: String,
    /// What `#[serde(…)]` says of it.
    pub attributes: Attributes,
    /// What it holds.
    pub content: Content,
}

/// What a variant holds.
pub(crate) enum Content {
    /// Nothing.
    Unit,
    /// One value without a name.
    Newtype,
    /// Members.
    Members(Vec<Field>),
}

/// What `#[serde(…)]` says, of a type, of a member or of a variant.
#[derive(Default)]
pub(crate) struct Attributes {
    /// `rename`.
    pub rename: Option<String>,
    /// `rename_all`.
    pub rename_all: Option<String>,
    /// `default`, with the path of a function, if it has one.
    pub default: Option<Option<String>>,
    /// `deserialize_with`.
    pub read_with: Option<String>,
    /// `with`: a type that is read in place of that of the member, and that becomes it.
    pub read_as: Option<String>,
    /// `deny_unknown_fields`.
    pub is_closed: bool,
    /// `skip`.
    pub is_skipped: bool,
    /// `other`: the variant for all words that have none.
    pub is_other: bool,
}

impl Item {
    /// Reads a structure with named members or an enumeration.
    pub(crate) fn read(item: TokenStream) -> Result<Self> {
        let mut tokens = item.into_iter().peekable();
        let attributes = Attributes::read(&mut tokens)?;
        pass_visibility(&mut tokens);
        let keyword = word(&mut tokens)?;
        let name = word(&mut tokens)?;
        let parameters = parameters(&mut tokens)?;
        let Some(TokenTree::Group(group)) = tokens.next() else { return Err(format!("{name} has no members")) };
        if group.delimiter() != Delimiter::Brace {
            return Err(format!("the members of {name} need names"));
        }
        let body = match keyword.as_str() {
            "struct" => Body::Structure(fields(group.stream())?),
            "enum" => Body::Enumeration(variants(group.stream())?),
            other => return Err(format!("{name} is a {other}, and neither a structure nor an enumeration")),
        };
        Ok(Self { name, parameters, attributes, body })
    }
}

impl Attributes {
    /// Reads all attributes that come next; those that are not for serde are passed over.
    fn read(tokens: &mut Tokens) -> Result<Self> {
        let mut read = Self::default();
        while tokens.next_if(|token| is_sign(token, '#')).is_some() {
            let Some(TokenTree::Group(group)) = tokens.next() else {
                return Err("this is not an attribute".to_owned());
            };
            let mut inner = group.stream().into_iter();
            if !matches!(inner.next(), Some(TokenTree::Ident(name)) if name.to_string() == "serde") {
                continue;
            }
            let Some(TokenTree::Group(list)) = inner.next() else { return Err("serde: a list is missing".to_owned()) };
            let mut list = list.stream().into_iter().peekable();
            while list.peek().is_some() {
                let name = word(&mut list)?;
                let value = match list.next_if(|token| is_sign(token, '=')) {
                    Some(_) => Some(literal(list.next())?),
                    None => None,
                };
                read.set(&name, value)?;
                list.next_if(|token| is_sign(token, ','));
            }
        }
        Ok(read)
    }

    /// Refuses any that says nothing of what has it, by its name.
    pub(crate) fn only_for(&self, name: &str, known: &[&str]) -> Result<()> {
        let said = [
            ("rename", self.rename.is_some()),
            ("rename_all", self.rename_all.is_some()),
            ("default", self.default.is_some()),
            ("deserialize_with", self.read_with.is_some()),
            ("with", self.read_as.is_some()),
            ("deny_unknown_fields", self.is_closed),
            ("skip", self.is_skipped),
            ("other", self.is_other),
        ];
        match said.into_iter().find(|(attribute, is_said)| *is_said && !known.contains(attribute)) {
            Some((attribute, _)) => Err(format!("serde({attribute}) of {name} says nothing to Member here")),
            None => Ok(()),
        }
    }

    fn set(&mut self, name: &str, value: Option<String>) -> Result<()> {
        match (name, value) {
            ("rename", Some(name)) => self.rename = Some(name),
            ("rename_all", Some(rule)) => self.rename_all = Some(rule),
            ("default", path) => self.default = Some(path),
            ("deserialize_with", Some(path)) => self.read_with = Some(path),
            ("with", Some(name)) => self.read_as = Some(name),
            ("deny_unknown_fields", None) => self.is_closed = true,
            ("other", None) => self.is_other = true,
            ("skip", None) => self.is_skipped = true,
            // The first two are about writing, and the last about where serde is.
            ("skip_serializing_if" | "remote" | "crate", Some(_)) => {}
            (other, _) => return Err(format!("a type with serde({other}) cannot be read by Member")),
        }
        Ok(())
    }
}

/// The names of parameters; bounds and defaults of them are not supported.
fn parameters(tokens: &mut Tokens) -> Result<Vec<String>> {
    let mut names = Vec::new();
    if tokens.next_if(|token| is_sign(token, '<')).is_some() {
        while tokens.next_if(|token| is_sign(token, '>')).is_none() {
            names.push(word(tokens)?);
            tokens.next_if(|token| is_sign(token, ','));
        }
    }
    Ok(names)
}

fn fields(stream: TokenStream) -> Result<Vec<Field>> {
    let mut tokens = stream.into_iter().peekable();
    let mut all = Vec::new();
    while tokens.peek().is_some() {
        let attributes = Attributes::read(&mut tokens)?;
        pass_visibility(&mut tokens);
        let name = word(&mut tokens)?;
        let name = name.strip_prefix("r#").unwrap_or(&name).to_owned();
        if !tokens.next().is_some_and(|token| is_sign(&token, ':')) {
            return Err(format!("{name} has no type"));
        }
        let is_option = matches!(tokens.peek(), Some(TokenTree::Ident(name)) if name.to_string() == "Option");
        pass_type(&mut tokens);
        all.push(Field { name, is_option, attributes });
    }
    Ok(all)
}

fn variants(stream: TokenStream) -> Result<Vec<Variant>> {
    let mut tokens = stream.into_iter().peekable();
    let mut all = Vec::new();
    while tokens.peek().is_some() {
        let attributes = Attributes::read(&mut tokens)?;
        let name = word(&mut tokens)?;
        let content = match tokens.next() {
            None => Content::Unit,
            Some(token) if is_sign(&token, ',') => Content::Unit,
            Some(TokenTree::Group(group)) => {
                tokens.next_if(|token| is_sign(token, ','));
                match group.delimiter() {
                    Delimiter::Brace => Content::Members(fields(group.stream())?),
                    _ => {
                        let mut inner = group.stream().into_iter().peekable();
                        pass_type(&mut inner);
                        match inner.peek() {
                            None => Content::Newtype,
                            Some(_) => return Err(format!("variant {name} holds several values without names")),
                        }
                    }
                }
            }
            Some(other) => return Err(format!("variant {name} is followed by {other}")),
        };
        all.push(Variant { name, attributes, content });
    }
    Ok(all)
}

/// Passes over `pub` and whom it is meant for.
fn pass_visibility(tokens: &mut Tokens) {
    if tokens.next_if(|token| matches!(token, TokenTree::Ident(name) if name.to_string() == "pub")).is_some() {
        tokens.next_if(|token| matches!(token, TokenTree::Group(_)));
    }
}

/// Passes over a type and the comma behind it. Commas of its parameters are between angle brackets.
fn pass_type(tokens: &mut Tokens) {
    let mut depth = 0_usize;
    for token in tokens.by_ref() {
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '<' => depth += 1,
            TokenTree::Punct(sign) if sign.as_char() == '>' => depth = depth.saturating_sub(1),
            TokenTree::Punct(sign) if sign.as_char() == ',' && depth == 0 => return,
            _ => {}
        }
    }
}

fn word(tokens: &mut Tokens) -> Result<String> {
    match tokens.next() {
        Some(TokenTree::Ident(name)) => Ok(name.to_string()),
        Some(other) => Err(format!("{other} where a name is expected")),
        None => Err("a name is missing".to_owned()),
    }
}

/// The content of a string; none of those that are used has anything to escape.
fn literal(token: Option<TokenTree>) -> Result<String> {
    let text = token.map(|token| token.to_string()).unwrap_or_default();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner
        .filter(|inner| !inner.contains('\\'))
        .map(str::to_owned)
        .ok_or_else(|| format!("{text} is not a plain string"))
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}
