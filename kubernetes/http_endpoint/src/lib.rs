//! An HTTP server for metrics and probes.
//!
//! In come a [`ListenAddress`] and [`Pages`]; out go the pages to whoever asks for one. What a
//! client can occupy is bounded: the number of connections, the size of the headers, and the time
//! that a connection lives. [`serve`] belongs on a thread of its own, so that clients take no time
//! from anything else.

mod address;
mod server;

pub use address::{ListenAddress, ListenAddressError};
pub use server::{Limits, Page, Pages, Request, serve};
