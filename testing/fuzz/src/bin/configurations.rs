//! See [`fuzz::configurations`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::configurations::check(data));
