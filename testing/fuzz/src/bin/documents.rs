//! See [`fuzz::documents`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::documents::check(data));
