//! See [`fuzz::allocations`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::allocations::check(data));
