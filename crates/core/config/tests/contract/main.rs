//! Configurations and inventories as their users see them: files, variables, flags and messages.

mod environment;
mod files;
mod inventory_format;
mod inventory_round_trip;
mod recorded_hosts;
mod reference;
mod sources;
