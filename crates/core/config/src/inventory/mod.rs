//! An inventory (`directx-inventory/v1`) is a YAML or JSON file that describes a host: its adapters
//! and the software that passes them to containers. Every program reads it with `--inventory` in
//! place of the host.
//!
//! `directx-device-plugin record --output host.yaml` writes the inventory of a node.
//!
//! # The smallest inventory
//!
//! A node with one GPU. `directx-device-plugin simulate --inventory host.yaml` admits a pod that
//! requests it:
//!
//! ```yaml
//! schema: directx-inventory/v1
//! host: {product: Windows Server 2022, build: 10.0.20348.1547, hcsSchemas: ['2.5']}
//! adapters:
//! - luid: 1
//!   driverDescription: NVIDIA Tesla T4
//!   attributes: [d3d11-graphics, d3d12-graphics, d3d12-core-compute]
//!   hardware: true
//!   hardwareId: {vendor: 0x10DE, device: 0x1EB8}
//!   pnp: {id: 'PCI\VEN_10DE&DEV_1EB8\1', locationPaths: ['PCIROOT(0)#PCI(1B00)']}
//! ```
//!
//! Another GPU is another adapter with another `luid`, `pnp.id` and location path. Without `pnp`
//! and its location path, an adapter cannot be assigned to a container, so it is not advertised.
//! Without `driverStore`, containers get no runtime files.
//!
//! # Attributes
//!
//! The attributes decide what a device is. One with display and compute is in
//! `directx.microsoft.com/display`, one with only compute in `directx.microsoft.com/compute`, and
//! any other in no resource.
//!
//! | attribute | display | compute | kind |
//! |---|---|---|---|
//! | `d3d11-graphics` | yes | | gpu |
//! | `d3d12-graphics` | yes | yes | gpu |
//! | `d3d12-core-compute` | | yes | |
//! | `d3d12-generic-ml` | | yes | |
//! | `d3d12-generic-media` | | | |
//! | `gpu` | | of AMD, Intel, NVIDIA and Qualcomm | gpu |
//! | `compute-accelerator` | | yes | accelerator |
//! | `npu` | | yes | npu |
//! | `media-accelerator` | | | accelerator |
//!
//! Of several kinds, the attributes `gpu` and `npu` decide first, then graphics. Compute-only
//! devices of NVIDIA are GPUs in any case but `npu`. Without a kind, those of AMD, Intel and
//! Qualcomm are NPUs, others accelerators.
//!
//! Three other devices: a GPU in MCDM mode and an NPU, which only compute, and a GPU of AMD:
//!
//! ```yaml
//! schema: directx-inventory/v1
//! host: {product: Windows Server 2025, build: 10.0.26100.1742, hcsSchemas: ['2.9']}
//! adapters:
//! - luid: 1
//!   driverDescription: NVIDIA L40S
//!   attributes: [d3d12-core-compute, gpu]
//!   hardware: true
//!   hardwareId: {vendor: 0x10DE, device: 0x26B9}
//!   pnp: {id: 'PCI\VEN_10DE&DEV_26B9\1', locationPaths: ['PCIROOT(0)#PCI(1B00)']}
//! - luid: 2
//!   driverDescription: Intel(R) AI Boost
//!   attributes: [d3d12-generic-ml, npu]
//!   hardware: true
//!   hardwareId: {vendor: 0x8086, device: 0x7D1D}
//!   pnp: {id: 'PCI\VEN_8086&DEV_7D1D\1', locationPaths: ['PCIROOT(0)#PCI(0B00)']}
//! - luid: 3
//!   driverDescription: AMD Radeon PRO V620
//!   attributes: [d3d11-graphics, d3d12-graphics, d3d12-core-compute]
//!   hardware: true
//!   hardwareId: {vendor: 0x1002, device: 0x73A1}
//!   pnp: {id: 'PCI\VEN_1002&DEV_73A1\1', locationPaths: ['PCIROOT(0)#PCI(1C00)']}
//! ```
//!
//! # Every key
//!
//! A key without `required` may be left out: then it is unknown, empty, none or false, unless its
//! comment says otherwise.
//!
//! ```yaml
//! schema: directx-inventory/v1          # required
//! recordedBy: 0.1.0                     # the version of `record`; such a file ends with `complete: true`
//! host:
//!   platform: windows                   # always windows, also if left out
//!   product: Microsoft Windows Server 2022 Datacenter
//!   displayVersion: 21H2
//!   build: 10.0.20348.1547
//!   hypervisor: none                    # none, own (Hyper-V of this Windows) or guest (a virtual machine)
//!   hcsSchemas: ['2.5']
//!   wow64: true                         # whether SysWOW64 exists; true if left out
//!   container: false                    # whether the host is the view from inside a container,
//!                                       # where runtime files are not known
//!   systemRoot: 'C:\Windows'            # %SystemRoot%; C:\Windows if left out
//! node:
//!   hcsError:                           # why there are no host.hcsSchemas
//!     kind: missing                     # required; missing (not installed) or unresponsive
//!     message: no Host Compute Service  # required
//!   containerd:                         # either path or notFoundIn
//!     path: 'C:\Program Files\containerd\containerd.exe'
//!     version: 1.7.22                   # with path: either version or versionError
//!     disabledPlugins: []               # with path: unknown if left out
//!   kubelet:                            # the keys of containerd except disabledPlugins
//!     notFoundIn: [the service `kubelet`, 'C:\k', PATH]   # every place that was searched
//!   nvml:                               # NVIDIA's management library
//!     library: 'C:\Windows\System32\nvml.dll'   # not found if left out
//!     gpus:                             # either gpus or gpusError, which is a text
//!     - index: 0                        # required, as are all keys of a GPU
//!       name: NVIDIA Tesla T4
//!       driverVersion: '528.49'         # NVIDIA's own version
//!       driverModel: WDDM               # WDDM, MCDM or TCC
//! devicesWithoutAdapter:                # display and compute devices with a problem,
//!                                       # for which Windows lists no adapter; only reported
//! - id: 'PCI\VEN_10DE&DEV_25B6\4&1'     # required, as is problemCode; the other keys are those of pnp
//!   description: NVIDIA A2
//!   problemCode: 43
//! adapters:                             # required; in the order the host lists them
//! - luid: 7048070                       # required; signed 64-bit, unique
//!   attributes: [d3d11-graphics, d3d12-graphics, d3d12-core-compute]   # required
//!   hardware: true                      # required
//!   integrated: false
//!   detachable: false
//!   indirectDisplay: false              # whether the graphics kernel calls it an indirect display, such as
//!                                       # that of a remote session
//!   hardwareId: {vendor: 0x10DE, device: 0x1EB8, subsystem: 0x12A210DE, revision: 0xA1}   # the last two 0 if left out
//!   driverDescription: NVIDIA Tesla T4
//!   driverVersion: 31.0.15.2849
//!   dedicatedMemoryMiB: 15360
//!   load:                               # for metrics without a GPU; the daemon reports it all the time
//!     utilizationPercent: 40            # of the 3D engine, from 0 to 100; 0 if left out
//!     usedMemoryMiB: 6144               # at most dedicatedMemoryMiB; 0 if left out
//!   nvidia:                             # what NVML reports of the GPU
//!     computeCapability: '7.5'
//!     license:
//!       state: licensed                 # required; licensed, unlicensed, or not-required
//!       expires: 2026-12-01T10:00:00Z   # left out: it does not expire
//!   pnp:                                # left out: no device carries this LUID
//!     id: 'PCI\VEN_10DE&DEV_1EB8\3&13C0B0C5&1&D8'   # required; unique without case
//!     description: NVIDIA Tesla T4
//!     manufacturer: NVIDIA
//!     driverKey: '{4d36e968-e325-11ce-bfc1-08002be10318}\0004'   # no driver if left out
//!     driverDate: 2023-02-14
//!     locationPaths: ['PCIROOT(0)#PCI(1B00)']
//!     numaNode: 0
//!     problemCode: 0                    # 0, a working device, if left out
//!   driverStore:                        # left out: the folder was not found
//!     path: 'C:\Windows\System32\DriverStore\FileRepository\nv.inf_amd64_1'   # required; if it is not in
//!                                       # that folder or HostDriverStore\FileRepository, no file is used
//!     files: [nvcuda_loader64.dll]      # left out: every file that is named exists
//!     copyToVm:
//!       CopyToVmWhenNewer:              # key → value name → REG_MULTI_SZ: a list of strings,
//!         '01': [nvcuda_loader64.dll, nvcuda.dll]
//!         '02': nvapi64.dll             # or REG_SZ
//! complete: true                        # required with recordedBy, so that a part of a file is refused
//! ```
//!
//! Unknown and duplicate keys, wrong types and impossible values are errors that name file, line
//! and key. A key without a value counts as left out, and scalars may be in quotes. What a live
//! host skips with a reason is valid in an inventory too: it is skipped with the same reason.

// `cargo xtask update` writes the text above to `docs/reference/inventory.md`.

mod error;
mod format;
mod read;
mod write;

pub use error::InventoryError;
pub use format::SCHEMA;
pub use read::{parse, read};
pub use write::{WriteError, to_yaml};
