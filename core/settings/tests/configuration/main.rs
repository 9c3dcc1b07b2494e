//! Configurations as people give them, through the published functions alone.

mod environment;
mod files;
mod reference;
mod sources;
