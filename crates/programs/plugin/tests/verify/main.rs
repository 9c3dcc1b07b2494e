//! `directx-device-plugin verify`, run as its users run it.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

mod containers;
mod kubelets;
mod program;
mod reports;
