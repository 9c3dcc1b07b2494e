//! The metrics: their page, the dashboard and a scrape.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

mod dashboard;
mod page;
mod scrape;
