//! The decisions of this crate, taken on hosts made up for each question.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its host should panic")]

mod hosts;
mod offers;
mod plans;
mod preferences;
mod selections;
mod sets;
