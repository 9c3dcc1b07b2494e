//! Flags, environment and YAML turned into one validated configuration.
