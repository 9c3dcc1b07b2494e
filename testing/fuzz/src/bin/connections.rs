//! See [`fuzz::connections`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::connections::check(data));
