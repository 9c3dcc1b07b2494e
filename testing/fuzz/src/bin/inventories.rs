//! See [`fuzz::inventories`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::inventories::check(data));
