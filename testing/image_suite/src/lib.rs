//! Has only tests: they run `cargo xtask image` as users do.
