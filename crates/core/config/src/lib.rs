//! Reads the configuration of the programs, and reads and writes inventories of hosts.
//!
//! [`load`] takes [`Flags`] and an [`Environment`] (environment variables and files) and
//! returns a [`Config`], or the [`ConfigError`] that says what to correct and where. The
//! program checks everything before it starts, so that a mistake is an error at start and
//! not at an allocation.
//!
//! A flag takes precedence over an environment variable, which takes precedence over the
//! file, which takes precedence over the default. `docs/configuration.md` is the reference;
//! a test writes its table of keys from [`reference()`], and compares the others with the keys of
//! the files and with [`VARIABLES`].
//!
//! ```no_run
//! let flags = config::Flags::default();
//! let config = config::load(&flags, &config::ProcessEnvironment)?;
//! for model in &config.models {
//!     println!("{model}"); // wddm multitenancy = 4 (C:\etc\…\wddm.yaml)
//! }
//! let catalog = devices::Catalog::new(config.policy);
//! # Ok::<(), config::ConfigError>(())
//! ```

mod advice;
mod any_case;
mod closest;
mod config;
mod config_files;
mod document;
mod environment;
mod error;
mod file_bytes;
mod indentation;
pub mod inventory;
mod keys;
mod kubernetes_object;
mod numbers;
mod policy;
mod read_error;
mod reference;
mod resources;
mod rules;
mod setting_types;
mod settings;
mod summary;
mod synonyms;
mod text;
mod values;
mod variables;

pub use advice::key_advice;
pub use closest::closest;
pub use config::{Config, Flags, load};
pub use environment::{EmptyEnvironment, Environment, ProcessEnvironment, Trust};
pub use error::ConfigError;
pub use file_bytes::read_bytes;
pub use read_error::{Place, ReadError};
pub use reference::KeyReference;
pub use settings::reference;
pub use summary::{ModelSummary, SettingText};
pub use values::{MAX_MEMORY_MIB, MAX_MULTITENANCY, MAX_REMOVAL_GRACE};
pub use variables::VARIABLES;
