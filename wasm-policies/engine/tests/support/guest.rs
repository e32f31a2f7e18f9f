//! A guest of our contract, written by hand: what it answers lies in its memory from the beginning.

#![allow(dead_code, reason = "each test program uses its own part")]

use ocm_policy_abi::{Decision, Edit, Verdict};

/// Where the answer lies.
pub const ANSWER: u32 = 8192;

/// Where its texts and lists begin; the first one is the code of the first reason.
pub const ANSWER_TEXTS: u32 = ANSWER + 64;

/// A guest of our contract: what its functions do, as WebAssembly text.
pub struct Guest {
    /// Fields at the top level of the module.
    pub fields: String,
    /// What happens in `describe` before it answers.
    pub describe: String,
    /// What happens in `configure` before it answers.
    pub configure: String,
    /// What happens in `decide` before it answers.
    pub decide: String,
    /// What happens in `cabi_realloc` before it answers.
    pub realloc: String,
    /// Pages of memory.
    pub pages: u32,
    /// The answer, in the words of JSON.
    pub answer: String,
    /// The manifest.
    pub manifest: String,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            fields: String::new(),
            describe: String::new(),
            configure: String::new(),
            decide: String::new(),
            realloc: String::new(),
            pages: 1,
            answer: r#"{"verdict":"allow"}"#.to_owned(),
            manifest: Self::manifest("guest", ""),
        }
    }
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:02x}")).collect()
}

impl Guest {
    /// A manifest with this name and more members, with a comma before each.
    pub fn manifest(name: &str, more: &str) -> String {
        format!(
            r#"{{"contract":"ocm:policy@0.1.0","name":"{name}","version":"1.0.0","operations":["create","update"]{more}}}"#
        )
    }

    /// One that does this in `decide`.
    pub fn deciding(decide: &str) -> Self {
        Self { decide: decide.to_owned(), ..Self::default() }
    }

    /// One that answers this.
    pub fn answering(answer: &str) -> Self {
        Self { answer: answer.to_owned(), ..Self::default() }
    }

    /// An answer as it lies in memory from [`ANSWER`] on.
    pub fn image(answer: &str) -> Vec<u8> {
        Memory::answer(answer)
    }

    /// The module.
    pub fn module(&self) -> Vec<u8> {
        let Self { fields, describe, configure, decide, realloc, pages, answer, manifest } = self;
        let answer = Self::image(answer);
        let text = format!(
            r#"(module
              (memory (export "memory") {pages})
              (global $next (mut i32) (i32.const {heap}))
              (data (i32.const 1024) "{manifest}")
              (data (i32.const {ANSWER}) "{bytes}")
              {fields}
              (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                {realloc}
                (if (i32.eqz (local.get 3)) (then (return (local.get 2))))
                (global.set $next
                  (i32.and (i32.sub (i32.const 0) (local.get 2))
                    (i32.sub (i32.add (global.get $next) (local.get 2)) (i32.const 1))))
                (global.get $next)
                (global.set $next (i32.add (global.get $next) (local.get 3))))
              (func (export "ocm:policy/policy@0.1.0#describe") (result i32)
                {describe}
                (i32.store (i32.const 16) (i32.const 1024))
                (i32.store (i32.const 20) (i32.const {manifest_length}))
                (i32.const 16))
              (func (export "ocm:policy/policy@0.1.0#configure") (param i32 i32) (result i32)
                (i32.store8 (i32.const 32) (i32.const 0))
                {configure}
                (i32.const 32))
              (func (export "ocm:policy/policy@0.1.0#decide") (param i32) (result i32)
                {decide}
                (i32.const {ANSWER})))"#,
            manifest = escaped(manifest.as_bytes()),
            bytes = escaped(&answer),
            manifest_length = manifest.len(),
            heap = (ANSWER as usize + answer.len()).next_multiple_of(8).max(16_384),
        );
        wat::parse_str(text).expect("the guest is WebAssembly text")
    }
}

/// A decision as it lies in the memory of a module (Component Model, canonical ABI, addresses of four bytes).
#[derive(Default)]
struct Memory(Vec<u8>);

impl Memory {
    /// From [`ANSWER`] on.
    fn answer(json: &str) -> Vec<u8> {
        let decision: Decision = serde_json::from_str(json).expect("the answer is a decision");
        let mut texts = Self::default();
        let mut bytes = texts.decision(&decision);
        bytes.resize((ANSWER_TEXTS - ANSWER) as usize, 0);
        bytes.extend(texts.0);
        bytes
    }

    fn put(&mut self, bytes: &[u8]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = ANSWER_TEXTS + u32::try_from(self.0.len()).expect("it is small");
        self.0.extend_from_slice(bytes);
        at
    }

    fn text(&mut self, text: &str) -> Vec<u8> {
        words([self.put(text.as_bytes()), u32::try_from(text.len()).expect("it is short")])
    }

    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, one: impl Fn(&mut Self, T) -> Vec<u8>) -> Vec<u8> {
        let items: Vec<_> = items.into_iter().map(|item| one(self, item)).collect();
        words([self.put(&items.concat()), u32::try_from(items.len()).expect("they are few")])
    }

    fn pair(&mut self, (key, value): (&String, &String)) -> Vec<u8> {
        [self.text(key), self.text(value)].concat()
    }

    fn decision(&mut self, decision: &Decision) -> Vec<u8> {
        let Decision { verdict, ask_again_seconds, reasons, warnings, edits, obligations, audit, more } = decision;
        let verdict = Verdict::ALL.iter().position(|known| known == verdict).expect("it is one of all");
        let reasons = self.list(reasons, |memory, reason| {
            let (code, message) = (memory.text(&reason.code), memory.text(&reason.message));
            let field = memory.text(reason.field.as_deref().unwrap_or_default());
            [code, message, words([reason.field.is_some().into()]), field].concat()
        });
        let warnings = self.list(warnings, |memory, warning| memory.text(warning));
        let edits = self.list(edits, Self::edit);
        let obligations = self.list(obligations, |memory, obligation| {
            let (name, within) = (memory.text(&obligation.name), maybe(obligation.within_seconds));
            [name, within, memory.list(&obligation.params, Self::pair)].concat()
        });
        let audit = self.list(audit, Self::pair);
        let more = self.list(more, |memory, (name, fact)| {
            let at = memory.text(name);
            // `value`: the case, padding up to eight bytes, and as much again for a text as JSON.
            let payload = memory.text(&fact.to_string());
            [at, words([4, 0]), payload].concat()
        });
        let verdict = words([u32::try_from(verdict).expect("there are four")]);
        [verdict, maybe(*ask_again_seconds), reasons, warnings, edits, obligations, audit, more].concat()
    }

    fn edit(&mut self, edit: &Edit) -> Vec<u8> {
        let (case, mut payload) = match edit {
            Edit::SetLabel { key, value } => (0, self.pair((key, value))),
            Edit::RemoveLabel { key } => (1, self.text(key)),
            Edit::SetAnnotation { key, value } => (2, self.pair((key, value))),
            Edit::RemoveAnnotation { key } => (3, self.text(key)),
            Edit::AddTaint { key, value, effect } => (4, [self.pair((key, value)), self.text(effect.word())].concat()),
            Edit::RemoveTaint { key } => (5, self.text(key)),
            Edit::SetClusterSet { name } => (6, self.text(name)),
            Edit::SetLeaseDuration { seconds } => (7, words([*seconds])),
        };
        payload.resize(24, 0);
        [words([case]), payload].concat()
    }
}

fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn maybe(number: Option<u32>) -> Vec<u8> {
    words([number.is_some().into(), number.unwrap_or_default()])
}
