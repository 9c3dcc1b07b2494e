//! The driver for tests, at the boundary of the ioctls: it checks the number of each call, the size
//! of each structure and the handles, as dxgkrnl and Windows do.
#![allow(unsafe_code, reason = "follows the pointers of requests, as the driver does")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "pointers and halves of LUIDs"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ptr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::device::DxgDevice;

/// The answers of an adapter to queries.
#[derive(Clone)]
pub(crate) struct FakeAdapter {
    pub(crate) luid: i64,
    pub(crate) is_compute_only: bool,
    pub(crate) answers: BTreeMap<u32, Vec<u8>>,
}

/// The state of the driver.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) adapters: Vec<FakeAdapter>,
    /// The connection to the host is broken: the error of `open`. Queries have another one, and
    /// lists work, because the kernel makes them itself.
    pub(crate) broken: Option<i32>,
    open: BTreeSet<u32>,
    /// The error of the next query of a kind.
    pub(crate) next_error: Option<(u32, i32)>,
    /// The open files. After the connection was broken, all of them must be closed.
    files: usize,
    is_stale: bool,
    /// Calls do not return: how often waiting calls have checked this.
    pub(crate) hangs: Option<u32>,
    /// How many queries failed.
    pub(crate) failed_queries: usize,
}

/// The driver.
#[derive(Clone, Default)]
pub(crate) struct Fake(pub(crate) Arc<Mutex<State>>);

impl Fake {
    pub(crate) fn with(adapters: Vec<FakeAdapter>) -> Fake {
        let fake = Fake::default();
        fake.change(|state| state.adapters = adapters);
        fake
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    pub(crate) fn open(&self) -> io::Result<DxgDevice> {
        if let Some(error) = self.change(|state| state.broken) {
            return Err(io::Error::from_raw_os_error(error));
        }
        self.change(|state| {
            state.is_stale &= state.files > 0;
            state.files += 1;
        });
        let file = File(self.clone());
        Ok(DxgDevice::with(Box::new(move |number, request| {
            while file.0.change(State::hangs) {
                thread::sleep(Duration::from_millis(1));
            }
            // SAFETY: the request is the structure for the number, as for the driver.
            let result = unsafe { file.0.change(|state| state.call(number, request.cast())) };
            result.map_err(io::Error::from_raw_os_error)
        })))
    }

    /// Breaks the connection to the host; `open` has this error.
    pub(crate) fn disconnect(&self, error: i32) {
        self.change(|state| (state.broken, state.is_stale) = (Some(error), true));
    }

    pub(crate) fn reconnect(&self) {
        self.change(|state| state.broken = None);
    }

    /// How many adapters are open.
    pub(crate) fn open_adapters(&self) -> usize {
        self.change(|state| state.open.len())
    }
}

/// An open file, which counts until it is dropped.
struct File(Fake);

impl Drop for File {
    fn drop(&mut self) {
        self.0.change(|state| state.files -= 1);
    }
}

impl State {
    fn hangs(&mut self) -> bool {
        self.hangs.as_mut().map(|checks| *checks += 1).is_some()
    }

    unsafe fn call(&mut self, number: u32, request: *mut u8) -> Result<(), i32> {
        // SAFETY: each offset is in the structure whose size is in the number.
        let word =
            |offset: usize| unsafe { ptr::read_unaligned(request.add(offset).cast::<u32>()) };
        // SAFETY: as above.
        let pointer =
            |offset: usize| unsafe { ptr::read_unaligned(request.add(offset).cast::<u64>()) };
        match number {
            0xC010_4714 | 0xC018_473E => {
                let is_new = number == 0xC018_473E;
                let (count, list) = if is_new { (8, pointer(16)) } else { (0, pointer(8)) };
                let shows_all = is_new && word(0) & 1 == 1;
                let shown = self.adapters.iter().filter(|a| shows_all || !a.is_compute_only);
                let entries: Vec<[u32; 5]> = shown
                    .zip(0x4000_0040..)
                    .map(|(a, handle)| {
                        let [low, high] = [a.luid, a.luid >> 32].map(|half| half as u32);
                        [handle, low, high, 0, 0]
                    })
                    .collect();
                if word(count) < u32::try_from(entries.len()).unwrap() {
                    return Err(libc::EOVERFLOW);
                }
                self.open.extend(entries.iter().map(|entry| entry[0]));
                let list = ptr::with_exposed_provenance_mut::<[u32; 5]>(list as usize);
                // SAFETY: the list has as many entries as the request says.
                unsafe { ptr::copy_nonoverlapping(entries.as_ptr(), list, entries.len()) };
                let listed = u32::try_from(entries.len()).unwrap();
                // SAFETY: as above.
                unsafe { ptr::write_unaligned(request.add(count).cast::<u32>(), listed) };
                Ok(())
            }
            0xC018_4709 => {
                let handle = word(0);
                let kind = word(4);
                let data = pointer(8);
                let size = word(16);
                let index = handle.wrapping_sub(0x4000_0040) as usize;
                if !self.open.contains(&handle) {
                    return Err(libc::EINVAL);
                }
                if self.is_stale {
                    return Err(libc::ENODEV);
                }
                if let Some((_, error)) = self.next_error.take_if(|(wanted, _)| *wanted == kind) {
                    return Err(error);
                }
                let Some(answer) = self.adapters.get(index).and_then(|a| a.answers.get(&kind))
                else {
                    self.failed_queries += 1;
                    return Err(libc::EINVAL);
                };
                // Only the registry query has a variable size.
                let fits = if kind == 48 {
                    answer.len() <= size as usize
                } else {
                    answer.len() == size as usize
                };
                if !fits {
                    return Err(libc::EINVAL);
                }
                let data = ptr::with_exposed_provenance_mut::<u8>(data as usize);
                if kind == 48 {
                    // SAFETY: the data has at least this size.
                    assert_eq!(
                        unsafe { ptr::read_unaligned(data.cast::<u32>()) },
                        2,
                        "the kind of value"
                    );
                }
                // SAFETY: as above.
                unsafe { ptr::copy_nonoverlapping(answer.as_ptr(), data, answer.len()) };
                Ok(())
            }
            0xC004_4715 => {
                if self.open.remove(&word(0)) {
                    Ok(())
                } else {
                    Err(libc::EINVAL)
                }
            }
            _ => Err(libc::ENOTTY),
        }
    }
}

/// A display adapter with Direct3D 12.
pub(crate) fn gpu(
    luid: i64,
    name: &str,
    ids: [u32; 5],
    address: [u32; 3],
    store: &str,
) -> FakeAdapter {
    let bytes = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let mut info = utf16(name);
    info.resize(2080, 0);
    let mut registry = vec![0; 544];
    registry[..4].copy_from_slice(&2_u32.to_le_bytes());
    registry.extend(utf16(store));
    registry.extend([0, 0]);
    let answers = BTreeMap::from([
        (3, [1024_u64 << 20, 0, 0].iter().flat_map(|n| n.to_le_bytes()).collect()),
        (6, bytes(&address)),
        (8, info),
        (13, bytes(&[3100])),
        // The adapter renders and is paravirtualized.
        (15, bytes(&[1 | 1 << 7])),
        (18, 0x001F_0000_0065_1442_u64.to_le_bytes().to_vec()),
        (31, bytes(&[0, ids[0], ids[1], ids[2], ids[3], ids[4], 0])),
        (48, registry),
    ]);
    FakeAdapter { luid, is_compute_only: false, answers }
}
