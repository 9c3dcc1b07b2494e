//! Configurations as users write them, through the public functions.

mod environment;
mod files;
mod reference;
mod sources;
