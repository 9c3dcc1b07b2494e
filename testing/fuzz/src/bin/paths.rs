//! See [`fuzz::paths`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::paths::check(data));
