//! See [`fuzz::replica_ids`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::replica_ids::check(data));
