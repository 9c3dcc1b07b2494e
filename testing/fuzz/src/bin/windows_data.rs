//! See [`fuzz::windows_data`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::windows_data::check(data));
