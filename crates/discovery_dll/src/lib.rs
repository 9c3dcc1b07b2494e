//! The DirectX device discovery library with a C ABI.
