//! Configurations as users write them, through the public functions.

mod environment;
mod files;
mod named;
mod reference;
mod sources;
