//! The DirectX adapters of a Linux virtual machine, such as WSL2, to which a Windows host lends
//! them through `/dev/dxg`.
//!
//! [`DxgSource`] asks the kernel's driver (dxgkrnl), which passes most queries to the graphics
//! kernel of Windows, so the structures are the same as in D3DKMT. It uses no library of the host:
//! the programs are linked statically, and a library would have to be mounted into the plugin's
//! container.
//!
//! The numbers and structures are from the driver's public interface
//! (<https://github.com/microsoft/WSL2-Linux-Kernel>, `include/uapi/misc/d3dkmthk.h`) and of
//! <https://github.com/microsoft/libdxg>. They have not been compared with a real host yet.

#![cfg(target_os = "linux")]

mod adapter;
mod device;
mod source;

pub use source::{DxgSource, OpenError};
