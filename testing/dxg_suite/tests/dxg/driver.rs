//! The driver: answers the ioctls of `/dev/dxg` (dxgkrnl, `d3dkmthk.h`) as for the adapters of an
//! inventory, and checks sizes and handles as the driver and Windows do.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "halves of LUIDs, and lengths of short lists"
)]

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::sync::{Condvar, Mutex, MutexGuard};

use devices::{Adapter, Attribute};

use super::supervisor::Memory;

/// The device file.
pub(crate) const DEVICE: &CStr = c"/dev/dxg";

/// The type of its ioctls.
pub(crate) const TYPE: u32 = 0x47;

const ENUM_ADAPTERS_2: u32 = 0xC010_4714;
const ENUM_ADAPTERS_3: u32 = 0xC018_473E;
const QUERY_ADAPTER_INFO: u32 = 0xC018_4709;
const CLOSE_ADAPTER: u32 = 0xC004_4715;

const FIRST_HANDLE: u32 = 0x4000_0040;
const REGISTRY: u32 = 48;

/// What the driver does.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) adapters: Vec<Adapter>,
    /// The driver knows neither `ENUM_ADAPTERS_3` nor adapters that only compute.
    pub(crate) is_old: bool,
    /// The error of opening the device.
    pub(crate) open_error: Option<i32>,
    /// The connection to the host was lost. All files must be closed before it can be used again.
    pub(crate) is_stale: bool,
    /// The error of each query of this kind.
    pub(crate) query_error: Option<(u32, i32)>,
    /// Calls do not return.
    pub(crate) hangs: bool,
    open: BTreeSet<u32>,
}

/// The driver.
#[derive(Default)]
pub(crate) struct Driver(Mutex<State>, Condvar);

impl Driver {
    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.1.notify_all();
    }

    /// How many adapters are open.
    pub(crate) fn open_adapters(&self) -> usize {
        self.state().open.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The error of opening the device in a process that has it open already, or not.
    pub(crate) fn open_error(&self, has_device_open: bool) -> Option<i32> {
        let mut state = self.state();
        state.is_stale &= has_device_open;
        state.open_error.or(state.is_stale.then_some(libc::EBADF))
    }

    /// Answers an ioctl: its number, and the address of its structure.
    pub(crate) fn call(&self, number: u32, request: u64, memory: &Memory) -> Result<(), i32> {
        let mut state = self.1.wait_while(self.state(), |state| state.hangs).unwrap();
        let fields = memory.read(request, (number >> 16 & 0x3FFF) as usize);
        match number {
            ENUM_ADAPTERS_3 if state.is_old => Err(libc::ENOTTY),
            ENUM_ADAPTERS_2 => state.list((request, 0), u64_at(&fields, 8), false, memory),
            ENUM_ADAPTERS_3 => {
                let shows_all = u32_at(&fields, 0) & 1 == 1;
                state.list((request, 8), u64_at(&fields, 16), shows_all, memory)
            }
            QUERY_ADAPTER_INFO => state.query(&fields, memory),
            CLOSE_ADAPTER if state.open.remove(&u32_at(&fields, 0)) => Ok(()),
            CLOSE_ADAPTER => Err(libc::EINVAL),
            _ => Err(libc::ENOTTY),
        }
    }
}

impl State {
    fn list(
        &mut self,
        (request, count): (u64, u64),
        list: u64,
        shows_all: bool,
        memory: &Memory,
    ) -> Result<(), i32> {
        let shown = (FIRST_HANDLE..).zip(&self.adapters);
        let shown = shown.filter(|(_, adapter)| shows_all || !is_compute_only(adapter));
        let entries: Vec<[u32; 5]> = shown
            .map(|(handle, adapter)| {
                let luid = adapter.luid.0;
                [handle, luid as u32, (luid >> 32) as u32, 0, 0]
            })
            .collect();
        if (u32_at(&memory.read(request + count, 4), 0) as usize) < entries.len() {
            return Err(libc::EOVERFLOW);
        }
        self.open.extend(entries.iter().map(|[handle, ..]| handle));
        memory.write(list, &bytes(entries.as_flattened()));
        memory.write(request + count, &bytes(&[entries.len() as u32]));
        Ok(())
    }

    fn query(&self, fields: &[u8], memory: &Memory) -> Result<(), i32> {
        let [handle, kind, size] = [0, 4, 16].map(|offset| u32_at(fields, offset));
        if !self.open.contains(&handle) {
            return Err(libc::EINVAL);
        }
        if self.is_stale {
            return Err(libc::ENODEV);
        }
        if let Some((_, error)) = self.query_error.filter(|(failing, _)| *failing == kind) {
            return Err(error);
        }
        let adapter = self.adapters.get((handle - FIRST_HANDLE) as usize).ok_or(libc::ENODEV)?;
        let answer = answer(adapter, kind).ok_or(libc::EINVAL)?;
        let data = u64_at(fields, 8);
        // Only the registry query has a variable size, and its structure begins with a kind, which
        // is that of the driver store.
        let is_valid = if kind == REGISTRY {
            answer.len() <= size as usize && u32_at(&memory.read(data, 4), 0) == 2
        } else {
            answer.len() == size as usize
        };
        if !is_valid {
            return Err(libc::EINVAL);
        }
        memory.write(data, &answer);
        Ok(())
    }
}

/// The answer to a query (`KMTQUERYADAPTERINFOTYPE`). A software adapter answers only one.
fn answer(adapter: &Adapter, kind: u32) -> Option<Vec<u8>> {
    if kind == 15 {
        return Some(bytes(&[flags(adapter)]));
    }
    let pnp = adapter.pnp.as_ref().filter(|_| adapter.hardware)?;
    Some(match kind {
        3 => [adapter.dedicated_memory_mib? << 20, 0, 0].map(u64::to_le_bytes).concat(),
        6 => {
            let (_, address) = pnp.id.as_str().rsplit_once('\\')?;
            let numbers = address.split('.').map(|part| u32::from_str_radix(part, 16).unwrap());
            bytes(&numbers.collect::<Vec<u32>>())
        }
        8 => {
            let mut info = utf16(&adapter.driver_description);
            info.resize(2080, 0);
            info
        }
        13 => bytes(&[3100]),
        18 => adapter.driver_version?.0.to_le_bytes().to_vec(),
        31 => {
            let ids = adapter.hardware_id;
            let subsystem_vendor = ids.subsystem & 0xFFFF;
            let subsystem = ids.subsystem >> 16;
            bytes(&[0, ids.vendor, ids.device, subsystem_vendor, subsystem, ids.revision, 0])
        }
        REGISTRY => {
            let path = adapter.driver_store.as_ref()?.path.replace(r"C:\Windows", r"\SystemRoot");
            [vec![2, 0, 0, 0], vec![0; 540], utf16(&path), vec![0; 2]].concat()
        }
        _ => return None,
    })
}

/// `D3DKMT_ADAPTERTYPE`: what the adapter is, and that it is paravirtualized.
fn flags(adapter: &Adapter) -> u32 {
    let flags = [
        (true, 0),
        (!adapter.hardware, 2),
        (adapter.integrated, 5),
        (true, 7),
        (adapter.detachable, 10),
        (is_compute_only(adapter), 11),
    ];
    flags.iter().filter(|(has, _)| *has).fold(0, |flags, (_, bit)| flags | 1 << bit)
}

fn is_compute_only(adapter: &Adapter) -> bool {
    !adapter.attributes.has(Attribute::D3d11Graphics)
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..][..4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..][..8].try_into().unwrap())
}
