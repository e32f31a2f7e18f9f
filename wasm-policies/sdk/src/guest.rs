//! What [`export!`](crate::export) puts around a policy: records in, records out.

use std::sync::OnceLock;

use crate::{Answer, Policy, Request, deny};

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

/// What the policy answers.
pub fn answer<P: Policy>(state: &OnceLock<P>, request: &Request<'_>) -> Answer {
    match state.get() {
        Some(policy) => policy.decide(request),
        None => deny("NotConfigured", "the policy was not configured"),
    }
}

/// The same question and answer as JSON: for test cases, which are decided natively as well.
#[cfg(not(target_family = "wasm"))]
pub fn decide<P: Policy>(state: &OnceLock<P>, request: &str) -> String {
    let answer = match serde_json::from_str::<ocm_policy_abi::Request<'_>>(request) {
        Ok(request) => answer(state, &request.into()),
        Err(error) => deny("RequestUnreadable", format!("the request cannot be read: {error}")),
    };
    // No host takes an empty text for an answer.
    serde_json::to_string(answer.decision()).unwrap_or_default()
}

/// What goes in and out of a module (Component Model, canonical ABI).
#[cfg(target_family = "wasm")]
pub mod wire {
    #![expect(unsafe_code, reason = "the host writes into and reads from our memory by address")]

    use std::alloc::{Layout, alloc, realloc};

    use ocm_policy_abi as abi;

    use crate::Answer;
    pub use crate::wit_types::{Decision, List, Request, Str};

    /// `result<_, list<string>>`.
    #[repr(C)]
    pub struct Outcome {
        is_error: u8,
        errors: List<'static, Str<'static>>,
    }

    /// A text for the host.
    pub fn text(text: String) -> *const Str<'static> {
        Box::leak(Box::new(Str::given(text)))
    }

    /// The outcome of `configure` for the host.
    pub fn outcome(result: Result<(), Vec<String>>) -> *const Outcome {
        let is_error = u8::from(result.is_err());
        let errors = result.err().into_iter().flatten().map(Str::given).collect();
        Box::leak(Box::new(Outcome { is_error, errors: List::given(errors) }))
    }

    /// A decision for the host.
    pub fn decision(answer: Answer) -> *const Decision {
        Box::leak(Box::new(abi::Decision::from(answer).into()))
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
}

/// Makes a module of a [`Policy`].
#[macro_export]
macro_rules! export {
    ($policy:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            static STATE: ::std::sync::OnceLock<$policy> = ::std::sync::OnceLock::new();

            #[unsafe(export_name = "ocm:policy/policy@0.1.0#describe")]
            extern "C" fn describe() -> *const $crate::guest::wire::Str<'static> {
                $crate::guest::wire::text($crate::guest::describe::<$policy>())
            }

            #[unsafe(export_name = "ocm:policy/policy@0.1.0#configure")]
            unsafe extern "C" fn configure(start: *const u8, length: usize) -> *const $crate::guest::wire::Outcome {
                // SAFETY: the host calls this with a string of its own.
                let settings = unsafe { $crate::guest::wire::given(start, length) };
                $crate::guest::wire::outcome($crate::guest::configure::<$policy>(&STATE, settings))
            }

            #[unsafe(export_name = "ocm:policy/policy@0.1.0#decide")]
            unsafe extern "C" fn decide(
                request: &'static $crate::guest::wire::Request<'static>,
            ) -> *const $crate::guest::wire::Decision {
                $crate::guest::wire::decision($crate::guest::answer::<$policy>(&STATE, &request.into()))
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
        assert!(decide::<Named>(&state, REQUEST).contains("NotConfigured"));
        assert_eq!(configure::<Named>(&state, r#"{"prefix": "!"}"#), Err(vec!["no".to_owned()]));
        assert_eq!(configure::<Named>(&state, r#"{"prefix": "c"}"#), Ok(()));
        assert!(configure::<Named>(&state, "{}").is_err(), "settings are final");
        assert_eq!(decide::<Named>(&state, REQUEST), r#"{"verdict":"allow"}"#);
        assert!(decide::<Named>(&state, "{").contains("RequestUnreadable"));
        let other = OnceLock::new();
        assert_eq!(configure::<Named>(&other, "null"), Ok(()), "nothing is an empty object");
        assert!(configure::<Named>(&OnceLock::new(), "[1").unwrap_err()[0].starts_with("the settings cannot be read"));
    }
}
