//! The DirectX device discovery library with a C ABI.
//!
//! In come calls from C, C++, Go or whatever else can call C; out go the devices of
//! this host as numbers and wide text. The functions and what they answer are those
//! of the earlier `directx-device-discovery.dll`; `include/DeviceDiscovery.h` is
//! their contract.
//!
//! Instances are independent. One may be used from any thread, and calls that come at
//! the same time wait for each other. No input crashes: a null, foreign or destroyed
//! instance and a number that is out of range are answered with the function's
//! failure value.
//!
//! Off Windows there is nothing to discover, so the same library reads the recorded
//! host that the environment variable `DIRECTX_DISCOVERY_INVENTORY` names. On Windows
//! the variable means nothing.

pub mod abi;
mod instance;
mod listed;
mod logging;
mod registry;
mod source;
mod wide;

pub use wide::WideChar;
