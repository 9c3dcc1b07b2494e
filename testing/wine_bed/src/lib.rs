//! Makes a Wine prefix look like the host of an inventory.
