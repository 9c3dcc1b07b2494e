//! The decisions of this crate, on hosts made up for each test.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its host should panic")]

mod additional_mounts;
mod cordons;
mod device_classes;
mod hosts;
mod launchers;
mod moved_devices;
mod no_mounts;
mod offers;
mod plans;
mod preferred_allocations;
mod selections;
mod sets;
mod shared_requests;
mod source_patterns;
mod unsettled;
