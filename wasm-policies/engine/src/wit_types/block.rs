//! A request in one piece of memory, for policies that take it so: one call of the guest's allocator in place of one for
//! each text and list, which is most of what asking costs.
//!
//! The layout is that of the canonical ABI all the same; only who owns what differs. A guest that frees texts one by one
//! must not ask for it (`requestInOneBlock` of the manifest): it would harm itself and nobody else.

use std::mem::MaybeUninit;

use wasmtime::Result;
use wasmtime::component::__internal::wasmtime_environ::component::StringEncoding;
use wasmtime::component::__internal::{CanonicalAbiInfo, ComponentVariant, InstanceType, InterfaceType, LowerContext};
use wasmtime::component::{ComponentType, Lower};

use super::{
    ApiObject, Claim, ClientConfig, Cluster, Condition, Csr, Entries, Entry, Key, Owner, Request, Requester, Row,
    Table, Taint, Value,
};

/// The bytes of the record itself; what it points at follows.
const RECORD: usize = Request::SIZE32;

/// The alignment of a block: no member of the records needs more.
const ALIGN: u32 = 8;

/// A request, laid out. Pointers count from the end of the record until it is known where that comes to lie.
#[derive(Clone)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    /// Where the pointers are.
    pointers: Vec<usize>,
}

impl Block {
    pub(crate) fn new(request: &Request<'_>) -> Self {
        // Enough for most, so that it is seldom moved.
        let mut bytes = Vec::with_capacity(8 << 10);
        bytes.resize(RECORD, 0);
        let mut block = Self { bytes, pointers: Vec::with_capacity(128) };
        request.place(&mut block, 0);
        block
    }

    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.bytes[at..at + N].copy_from_slice(&bytes);
    }

    /// Makes room at the end, and points to it.
    fn list(&mut self, at: usize, align: u32, size: usize, length: usize) -> usize {
        if length == 0 {
            // Nobody looks there; zero is no address in some languages.
            self.put(at, align.to_le_bytes());
            return self.bytes.len();
        }
        let start = RECORD + (self.bytes.len() - RECORD).next_multiple_of(align as usize);
        self.bytes.resize(start + size * length, 0);
        // Lengths are those of a request, which is bounded far below; what does not fit is refused as a whole.
        self.put(at, u32::try_from(start - RECORD).unwrap_or(u32::MAX).to_le_bytes());
        self.put(at + 4, u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        self.pointers.push(at);
        start
    }
}

/// Something that has its place in a block.
trait Place: ComponentType {
    /// Writes it where it belongs, and what it points at behind everything else.
    fn place(&self, block: &mut Block, at: usize);

    /// The place of the next member of a record.
    fn next(&self, offset: &mut usize) -> usize {
        let own = offset.next_multiple_of(Self::ALIGN32 as usize);
        *offset = own + Self::SIZE32;
        own
    }
}

impl Place for bool {
    fn place(&self, block: &mut Block, at: usize) {
        block.put(at, [u8::from(*self)]);
    }
}

impl Place for u32 {
    fn place(&self, block: &mut Block, at: usize) {
        block.put(at, self.to_le_bytes());
    }
}

impl Place for i64 {
    fn place(&self, block: &mut Block, at: usize) {
        block.put(at, self.to_le_bytes());
    }
}

impl Place for &str {
    fn place(&self, block: &mut Block, at: usize) {
        let start = block.list(at, 1, 1, self.len());
        block.bytes[start..start + self.len()].copy_from_slice(self.as_bytes());
    }
}

impl<T: Place> Place for Vec<T> {
    fn place(&self, block: &mut Block, at: usize) {
        let start = block.list(at, T::ALIGN32, T::SIZE32, self.len());
        for (number, item) in self.iter().enumerate() {
            item.place(block, start + number * T::SIZE32);
        }
    }
}

impl<T: Place> Place for Option<T> {
    fn place(&self, block: &mut Block, at: usize) {
        if let Some(it) = self {
            block.put(at, [1]);
            it.place(block, at + <Self as ComponentVariant>::PAYLOAD_OFFSET32);
        }
    }
}

impl<A: Place, B: Place> Place for (A, B) {
    fn place(&self, block: &mut Block, at: usize) {
        let mut next = 0;
        self.0.place(block, at + self.0.next(&mut next));
        self.1.place(block, at + self.1.next(&mut next));
    }
}

impl Place for Value<'_> {
    fn place(&self, block: &mut Block, at: usize) {
        let inside = at + <Self as ComponentVariant>::PAYLOAD_OFFSET32;
        let case = match self {
            Self::Absent => 0,
            Self::Boolean(truth) => {
                truth.place(block, inside);
                1
            }
            Self::Integer(number) => {
                number.place(block, inside);
                2
            }
            Self::Text(text) => {
                text.place(block, inside);
                3
            }
            Self::Json(json) => {
                json.as_str().place(block, inside);
                4
            }
            Self::Texts(texts) => {
                texts.place(block, inside);
                5
            }
        };
        block.put(at, [case]);
    }
}

/// Members in the order of the record, which is that of the struct.
macro_rules! record {
    ($record:ident: $($member:ident)*) => {
        impl Place for $record<'_> {
            fn place(&self, block: &mut Block, at: usize) {
                let Self { $($member),* } = self;
                let mut next = 0;
                $($member.place(block, at + $member.next(&mut next));)*
            }
        }
    };
}

record!(Entry: key value);
record!(Entries: key values);
record!(Requester: username uid groups extra certificate_sha256);
record!(ApiObject: group version kind resource subresource namespace name operation field_manager options);
record!(Owner: api_version kind name uid controller);
record!(Taint: key value effect added);
record!(ClientConfig: url ca_sha256);
record!(Claim: name value);
record!(Condition: kind status reason message since);
record!(Cluster: name uid resource_version generation labels annotations finalizers owners created deleting accepted
    lease_duration_seconds taints client_configs claims kubernetes_version conditions truncated more);
record!(Key: algorithm bits);
record!(Csr: name uid resource_version labels annotations signer usages lifetime_seconds requester created unreadable
    common_names organizations other_attributes alternative_names extensions key spki_sha256 signature adds_condition
    state more);
record!(Row: namespace name values complete);
record!(Table: name revision complete rows);
record!(Request: id operation now dry_run attempt stage requester creator resource cluster previous csr object
    previous_object evidence set_by_policies obligations more);

/// A request on its way into a guest that takes it in one block.
pub(crate) struct Whole<'q>(pub(crate) &'q Block);

// SAFETY: a `request` to whoever asks, and its layout.
#[expect(unsafe_code, reason = "the runtime trusts what the trait says of a layout")]
unsafe impl ComponentType for Whole<'_> {
    type Lower = <Request<'static> as ComponentType>::Lower;

    const ABI: CanonicalAbiInfo = Request::ABI;

    fn typecheck(ty: &InterfaceType, types: &InstanceType<'_>) -> Result<()> {
        Request::typecheck(ty, types)
    }
}

// SAFETY: writing flat is refused, so nobody takes what was not written for something.
#[expect(unsafe_code, reason = "the runtime trusts that what succeeds has written everything")]
unsafe impl Lower for Whole<'_> {
    fn linear_lower_to_flat<T>(
        &self,
        _: &mut LowerContext<'_, T>,
        _: InterfaceType,
        _: &mut MaybeUninit<Self::Lower>,
    ) -> Result<()> {
        // A record of so many members goes through memory.
        Err(wasmtime::Error::msg("a request is too long for registers"))
    }

    fn linear_lower_to_memory<T>(&self, cx: &mut LowerContext<'_, T>, _: InterfaceType, offset: usize) -> Result<()> {
        if cx.options().string_encoding != StringEncoding::Utf8 {
            return Err(wasmtime::Error::msg("whoever takes a request in one block takes texts in UTF-8"));
        }
        let Block { bytes, pointers } = self.0;
        let (record, rest) = bytes.split_at(RECORD);
        let base = if rest.is_empty() { 0 } else { cx.realloc(0, 0, ALIGN, rest.len())? };
        let memory = cx.as_slice_mut();
        memory[offset..][..RECORD].copy_from_slice(record);
        memory[base..][..rest.len()].copy_from_slice(rest);
        // A guest that gives away the same memory twice writes over what is there: whatever comes of that is its own.
        for at in pointers {
            let lies = if *at < RECORD { offset + at } else { base + at - RECORD };
            let pointer = memory[lies..].first_chunk_mut::<4>().ok_or_else(|| wasmtime::Error::msg("out of memory"))?;
            *pointer = u32::from_le_bytes(*pointer).wrapping_add(u32::try_from(base)?).to_le_bytes();
        }
        Ok(())
    }
}
