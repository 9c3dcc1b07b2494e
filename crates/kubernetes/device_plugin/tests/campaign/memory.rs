//! Counts the bytes that the process holds.

#![allow(unsafe_code, reason = "implementing an allocator requires unsafe code")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static HELD: AtomicUsize = AtomicUsize::new(0);

/// The system allocator with a count of the allocated bytes.
pub(crate) struct Counting;

/// The number of bytes that are currently allocated.
pub(crate) fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

// SAFETY: every call is passed unchanged to the system allocator; counting accesses no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantees for `layout` are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `pointer` came from `System` through `alloc`, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}
