//! What [`export!`](crate::export) puts around a policy: texts in, texts out.

use std::sync::OnceLock;

use crate::{Policy, Request, deny};

/// `describe` of the contract.
pub fn describe<P: Policy>() -> String {
    P::manifest().into_json()
}

/// `configure` of the contract. Empty settings are `null`, or an empty object.
///
/// # Errors
/// What is wrong with the settings.
pub fn configure<P: Policy>(state: &OnceLock<P>, settings: &str) -> Result<(), Vec<String>> {
    let read = serde_json::from_str::<P::Settings>(settings).or_else(|error| {
        // Settings without members may be left out or be written as an empty object, whatever their type.
        match settings.trim() {
            "{}" => serde_json::from_str("null").map_err(|_| error),
            "null" | "" => serde_json::from_str("{}").map_err(|_| error),
            _ => Err(error),
        }
    });
    let policy = read.map_err(|error| vec![format!("the settings cannot be read: {error}")]).and_then(P::configure)?;
    state.set(policy).map_err(|_| vec!["the policy has been configured already".to_owned()])
}

/// `decide` of the contract.
pub fn decide<P: Policy>(state: &OnceLock<P>, request: &str) -> String {
    let answer = match (state.get(), Request::read(request)) {
        (Some(policy), Some(request)) => policy.decide(&request),
        (None, _) => deny("not-configured", "the policy was not configured"),
        (_, None) => deny("request-unreadable", "the request is no JSON object"),
    };
    // No host takes an empty text for an answer.
    serde_json::to_string(answer.decision()).unwrap_or_default()
}

/// The canonical form of texts and lists on their way out, and the way of texts in (Component Model, Canonical ABI).
#[cfg(target_family = "wasm")]
pub mod wire {
    #![expect(unsafe_code, reason = "the host writes into and reads from our memory by address")]

    use std::alloc::{Layout, alloc, realloc};

    /// A text or a list: where it begins, and how long it is. The host reads it from our memory.
    #[repr(C)]
    pub struct Span {
        start: *const u8,
        length: usize,
    }

    /// `result<_, list<string>>`.
    #[repr(C)]
    pub struct Outcome {
        is_error: u8,
        errors: Span,
    }

    /// A text for the host. It stays where it is: the instance ends with the answer.
    pub fn text(text: String) -> *const Span {
        let text: &'static str = text.leak();
        Box::leak(Box::new(Span { start: text.as_ptr(), length: text.len() }))
    }

    /// The outcome of `configure` for the host.
    pub fn outcome(result: Result<(), Vec<String>>) -> *const Outcome {
        let errors: Vec<Span> = result
            .err()
            .into_iter()
            .flatten()
            .map(|text| {
                let text: &'static str = text.leak();
                Span { start: text.as_ptr(), length: text.len() }
            })
            .collect();
        let is_error = u8::from(!errors.is_empty());
        let errors: &'static [Span] = errors.leak();
        Box::leak(Box::new(Outcome { is_error, errors: Span { start: errors.as_ptr().cast(), length: errors.len() } }))
    }

    /// A text that the host has written.
    ///
    /// # Safety
    /// `start` and `length` are what the host passes to an export that takes a string.
    pub unsafe fn given<'a>(start: *const u8, length: usize) -> &'a str {
        // SAFETY: the host allocated the piece with `cabi_realloc` and checked that it is UTF-8.
        unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(start, length)) }
    }

    /// Where the host gets memory for what it passes.
    #[unsafe(export_name = "cabi_realloc")]
    extern "C" fn cabi_realloc(old: *mut u8, old_size: usize, align: usize, size: usize) -> *mut u8 {
        if size == 0 {
            return std::ptr::without_provenance_mut(align);
        }
        // SAFETY: the host keeps to the canonical ABI: powers of two, and old pieces as they were given.
        let piece = unsafe {
            match old_size {
                0 => alloc(Layout::from_size_align_unchecked(size, align)),
                _ => realloc(old, Layout::from_size_align_unchecked(old_size, align), size),
            }
        };
        if piece.is_null() {
            std::process::abort();
        }
        piece
    }

    /// Tells tools that make components of modules which world this is: `wasm-policies/wit`, encoded.
    #[unsafe(link_section = "component-type:ocm:policy@0.1.0:gate:sdk")]
    #[used]
    static WORLD: [u8; include_bytes!("world.bin").len()] = *include_bytes!("world.bin");

    /// Keeps this module's exports and section in every policy that uses it.
    #[inline(never)]
    pub fn anchor() -> *const u8 {
        WORLD.as_ptr()
    }
}

/// Makes a module of a [`Policy`].
#[macro_export]
macro_rules! export {
    ($policy:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            static STATE: ::std::sync::OnceLock<$policy> = ::std::sync::OnceLock::new();

            #[unsafe(export_name = "ocm:policy/policy@0.1.0#describe")]
            extern "C" fn describe() -> *const $crate::guest::wire::Span {
                $crate::guest::wire::text($crate::guest::describe::<$policy>())
            }

            #[unsafe(export_name = "ocm:policy/policy@0.1.0#configure")]
            unsafe extern "C" fn configure(start: *const u8, length: usize) -> *const $crate::guest::wire::Outcome {
                // SAFETY: the host calls this with a string of its own.
                let settings = unsafe { $crate::guest::wire::given(start, length) };
                $crate::guest::wire::outcome($crate::guest::configure::<$policy>(&STATE, settings))
            }

            #[unsafe(export_name = "ocm:policy/policy@0.1.0#decide")]
            unsafe extern "C" fn decide(start: *const u8, length: usize) -> *const $crate::guest::wire::Span {
                // SAFETY: the host calls this with a string of its own.
                let request = unsafe { $crate::guest::wire::given(start, length) };
                $crate::guest::wire::text($crate::guest::decide::<$policy>(&STATE, request))
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, ManifestBuilder, Operation, allow, manifest};

    struct Named(String);

    #[derive(serde::Deserialize)]
    struct Settings {
        #[serde(default)]
        prefix: String,
    }

    impl Policy for Named {
        type Settings = Settings;

        fn manifest() -> ManifestBuilder {
            manifest("named", "1.0.0", "Test").judges([Operation::Create]).gives("name", "Wrong")
        }

        fn configure(settings: Settings) -> Result<Self, Vec<String>> {
            if settings.prefix == "!" { Err(vec!["no".to_owned()]) } else { Ok(Self(settings.prefix)) }
        }

        fn decide(&self, request: &Request<'_>) -> Answer {
            match request.cluster() {
                Some(cluster) if cluster.name.starts_with(&self.0) => allow(),
                _ => deny("name", "wrong name").at("metadata.name"),
            }
        }
    }

    const REQUEST: &str = r#"{"id": "1", "operation": "create", "now": 0, "requester": {"username": "u"},
        "cluster": {"name": "c1"}, "something": "newer"}"#;

    #[test]
    fn a_policy_is_configured_once_and_decides() {
        let state = OnceLock::new();
        assert!(decide::<Named>(&state, REQUEST).contains("not-configured"));
        assert_eq!(configure::<Named>(&state, r#"{"prefix": "!"}"#), Err(vec!["no".to_owned()]));
        assert_eq!(configure::<Named>(&state, r#"{"prefix": "c"}"#), Ok(()));
        assert!(configure::<Named>(&state, "{}").is_err(), "settings are final");
        assert_eq!(decide::<Named>(&state, REQUEST), r#"{"verdict":"allow"}"#);
        assert!(decide::<Named>(&state, "{").contains("request-unreadable"));
        let other = OnceLock::new();
        assert_eq!(configure::<Named>(&other, "null"), Ok(()), "nothing is an empty object");
        assert!(configure::<Named>(&OnceLock::new(), "[1").unwrap_err()[0].starts_with("the settings cannot be read"));
    }
}
