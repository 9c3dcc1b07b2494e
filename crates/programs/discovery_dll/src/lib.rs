//! The DirectX device discovery library with a C ABI.
//!
//! Programs in C, C++, Go and other languages that can call C read the devices of this host
//! as numbers and wide text. The functions and their results are those of the earlier
//! `directx-device-discovery.dll`; `include/DeviceDiscovery.h` documents them.
//!
//! Instances are independent. Any thread can use an instance, and concurrent calls wait for
//! each other. No argument can crash the library: for a null, invalid or destroyed instance
//! and for an index out of range, a function returns its failure value.
//!
//! On other systems than Windows, the library reads the inventory that the environment
//! variable `DIRECTX_DISCOVERY_INVENTORY` names. On Windows it ignores the variable.

pub mod abi;
mod device;
mod handles;
mod instance;
mod logging;
mod source;
mod wide;

pub use wide::WideChar;
