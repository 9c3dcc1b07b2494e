//! `directx-device-plugin doctor`, run as its users run it.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

mod reports;
mod troubleshooting;
