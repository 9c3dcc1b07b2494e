//! See [`fuzz::slot_ids`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::slot_ids::check(data));
