//! Interprets what Windows, its drivers and containerd report: registry values, device properties,
//! structures of the graphics kernel, access control lists and specifications of containers.
//!
//! Nothing here calls Windows, so every system builds and tests all of it. `win32` reads the data.

pub mod assembly;
pub mod container_specification;
pub mod containerd_state;
pub mod copy_to_vm;
pub mod device_class;
pub mod directory_access;
pub mod hcs_schemas;
pub mod kernel_report;
pub mod nvml;
pub mod nvml_license;
pub mod order;
pub mod product;
pub mod property;
pub mod service_command;
pub mod store_path;
pub mod telemetry;
pub mod text;
