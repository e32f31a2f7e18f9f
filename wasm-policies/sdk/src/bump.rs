//! The allocator of a policy: it only moves forward.
//!
//! An instance makes one decision and is thrown away, so giving memory back is work for nothing. What is freed or grown
//! last is still reused in place, because texts and lists grow that way.

#![expect(unsafe_code, reason = "a global allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

unsafe extern "C" {
    /// The first byte behind stack and data; the linker defines it.
    static __heap_base: u8;
}

/// WebAssembly pages are 64 KiB.
const PAGE: usize = 65_536;

struct Bump {
    /// The first free address; 0 before the first allocation.
    next: Cell<usize>,
    /// The first address behind the memory that there is.
    end: Cell<usize>,
}

// SAFETY: modules have one thread; the contract has no way to start another.
unsafe impl Sync for Bump {}

#[global_allocator]
static BUMP: Bump = Bump { next: Cell::new(0), end: Cell::new(0) };

impl Bump {
    fn take(&self, from: usize, size: usize) -> *mut u8 {
        let Some(end) = from.checked_add(size) else { return std::ptr::null_mut() };
        if end > self.end.get() {
            let have = std::arch::wasm32::memory_size(0) * PAGE;
            if end > have {
                let pages = (end - have).div_ceil(PAGE);
                if std::arch::wasm32::memory_grow(0, pages) == usize::MAX {
                    return std::ptr::null_mut();
                }
            }
            self.end.set(std::arch::wasm32::memory_size(0) * PAGE);
        }
        self.next.set(end);
        from as *mut u8
    }
}

// SAFETY: pieces never overlap: each begins at or behind the end of all that are in use.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let next = match self.next.get() {
            0 => (&raw const __heap_base) as usize,
            next => next,
        };
        let Some(from) = next.checked_next_multiple_of(layout.align()) else { return std::ptr::null_mut() };
        self.take(from, layout.size())
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if piece as usize + layout.size() == self.next.get() {
            self.next.set(piece as usize);
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if piece as usize + layout.size() == self.next.get() {
            return self.take(piece as usize, size);
        }
        if size <= layout.size() {
            return piece;
        }
        // SAFETY: the alignment was valid before, and the caller vouches for the size.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(piece, new, layout.size());
            }
            new
        }
    }
}
