//! Configurations as people give them, through the published functions alone.

mod files;
mod made;
mod reference;
mod sources;
