//! Flags, environment and YAML turned into one validated configuration.
//!
//! In come [`Flags`] and the [`Surroundings`] (environment variables and files, real
//! or not); out comes a [`Config`], or the one [`SettingsError`] that says what to
//! mend and where. Nothing starts before everything here has been checked, so a
//! mistake is a message at the start and never a surprise at an allocation.
//!
//! For each value: a flag beats an environment variable, which beats the file, which
//! beats the default. `docs/configuration.md` is the reference for people; a test
//! holds it against [`KEYS`] and [`VARIABLES`].
//!
//! ```no_run
//! let flags = settings::Flags::default();
//! let config = settings::load(&flags, &settings::System)?;
//! for setting in &config.effective {
//!     println!("{setting}"); // wddm multitenancy = 4 (C:\etc\…\wddm.yaml:1)
//! }
//! let catalog = devices::Catalog::new(config.policy);
//! # Ok::<(), settings::SettingsError>(())
//! ```

mod config;
mod error;
mod file;
mod locate;
mod model;
mod mounts;
mod origin;
mod resources;
mod rules;
mod surroundings;
mod variables;
mod words;

pub use config::{Config, Flags, load};
pub use error::SettingsError;
pub use file::{KEYS, MOUNT_KEYS};
pub use origin::{Effective, Origin};
pub use rules::{MATCH_KEYS, RULE_KEYS};
pub use surroundings::{Surroundings, System};
pub use variables::VARIABLES;

/// The most slots one device may be shared by. More than some 50,000 ids are over
/// the 4 MiB that the kubelet takes in one list, whatever the device is called.
pub const MAX_MULTITENANCY: u32 = 65_536;
/// The longest grace for a device that went away, in seconds: a day.
pub const MAX_REMOVAL_GRACE: u64 = 86_400;
/// The most memory a rule may ask of a device, in MiB: 16 TiB.
pub const MAX_MEMORY_MIB: u64 = 16 << 20;
