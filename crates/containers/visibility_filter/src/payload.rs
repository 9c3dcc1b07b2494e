//! The filter's configuration in a process: bytes before the process's import table.

use core::mem::{offset_of, transmute, transmute_copy};

use crate::AllowedLuids;
use crate::architecture::Architecture;

/// Distinguishes a payload, and its version, from other bytes.
const MAGIC: [u8; 8] = *b"DXVisib4";

/// The longest path of the filter in bytes; with the NUL after it, as long as Windows' own
/// limit.
pub(crate) const MAX_PATH_LENGTH: usize = 259;

/// A flag: a process that cannot be filtered does not run. Otherwise it sees every adapter.
pub const REQUIRED: u64 = 1;
/// A flag: child processes report what is not filtered.
pub const VERBOSE: u64 = 2;
/// A flag: a program started the process, and not the launcher.
pub(crate) const CHILD: u64 = 4;

/// The filter's configuration. Every pattern of bits is a value, and there is no padding.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload {
    magic: [u8; 8],
    pub(crate) allowed: AllowedLuids,
    /// [`REQUIRED`], [`VERBOSE`] and `CHILD`.
    pub flags: u64,
    /// The filters for 64-bit and for 32-bit programs, in the order of [`Architecture`].
    paths: [FilterPath; 2],
}

/// A path in ASCII, with zeros after it; all zeros if there is none.
type FilterPath = [u8; MAX_PATH_LENGTH + 1];

pub(crate) const SIZE: usize = size_of::<Payload>();

impl Payload {
    /// A payload for the filter at `path`, an absolute path. 32-bit programs are not
    /// filtered. An error says what is wrong with the path.
    pub fn new(allowed: AllowedLuids, path: &str) -> Result<Payload, &'static str> {
        let paths = [filter_path(path)?, [0; MAX_PATH_LENGTH + 1]];
        Ok(Payload { magic: MAGIC, allowed, flags: 0, paths })
    }

    /// Sets the filter for 32-bit programs. An error says what is wrong with its path.
    pub fn set_32_bit_filter(&mut self, path: &str) -> Result<(), &'static str> {
        self.paths[Architecture::X86 as usize] = filter_path(path)?;
        Ok(())
    }

    /// Whether a process that cannot be filtered does not run.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.flags & REQUIRED != 0
    }

    /// Whether a process reports that something of it is not filtered.
    pub(crate) fn reports(&self) -> bool {
        self.flags & (REQUIRED | VERBOSE) != 0 || self.flags & CHILD == 0
    }

    /// The path of the filter for programs of this architecture, in ASCII; empty if there is
    /// none.
    pub(crate) fn path(&self, architecture: Architecture) -> &[u8] {
        let path = &self.paths[architecture as usize];
        let end = path.iter().position(|byte| *byte == 0).unwrap_or(MAX_PATH_LENGTH);
        &path[..end]
    }

    /// The offset of [`Payload::path`] in a payload.
    pub(crate) fn path_offset(architecture: Architecture) -> usize {
        offset_of!(Payload, paths) + architecture as usize * size_of::<FilterPath>()
    }

    /// This payload, limited by the payload of an outer launcher.
    pub(crate) fn within(mut self, outer: &Payload) -> Payload {
        self.allowed = self.allowed.and(&outer.allowed);
        self.flags = (self.flags | outer.flags) & !CHILD | self.flags & outer.flags;
        self
    }

    /// The payload as bytes.
    pub(crate) fn bytes(&self) -> [u8; SIZE] {
        // SAFETY: the structure has no padding.
        unsafe { transmute::<Payload, [u8; SIZE]>(*self) }
    }

    /// Reads [`Payload::bytes`]; `None` for other bytes.
    pub(crate) fn read(bytes: &[u8; SIZE]) -> Option<Payload> {
        // SAFETY: every pattern of bits is a value.
        let payload = unsafe { transmute_copy::<[u8; SIZE], Payload>(bytes) };
        (payload.magic == MAGIC).then_some(payload)
    }
}

/// Names of imported libraries have no certain encoding, so a path must be ASCII.
fn filter_path(path: &str) -> Result<FilterPath, &'static str> {
    if path.len() > MAX_PATH_LENGTH {
        return Err("is longer than 259 characters");
    }
    if !path.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
        return Err("has characters that are not ASCII");
    }
    let mut bytes = [0; MAX_PATH_LENGTH + 1];
    bytes[..path.len()].copy_from_slice(path.as_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            luids in proptest::collection::vec(any::<i64>(), 0..=64),
            path in "[ -~]{1,259}",
            path_32 in "[ -~]{0,259}",
            flags: u64,
        ) {
            let mut payload = Payload::new(AllowedLuids::new(luids).unwrap(), &path).unwrap();
            payload.set_32_bit_filter(&path_32).unwrap();
            payload.flags = flags;
            prop_assert_eq!(payload.path(Architecture::X64), path.as_bytes());
            prop_assert_eq!(payload.path(Architecture::X86), path_32.as_bytes());
            prop_assert_eq!(Payload::read(&payload.bytes()), Some(payload));
        }

        #[test]
        fn other_bytes_are_refused_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), SIZE),
            magic: bool,
        ) {
            let mut bytes: [u8; SIZE] = bytes.try_into().unwrap();
            if magic {
                bytes[..8].copy_from_slice(&MAGIC);
            }
            let found = Payload::read(&bytes);
            prop_assert_eq!(found.is_some(), magic);
            if let Some(found) = found {
                prop_assert!(found.allowed.as_slice().len() <= 64);
                prop_assert!(found.path(Architecture::X86).len() <= MAX_PATH_LENGTH);
            }
        }
    }

    fn payload(luids: &[i64]) -> Payload {
        let allowed = AllowedLuids::new(luids.iter().copied()).unwrap();
        Payload::new(allowed, "C:\\filter.dll").unwrap()
    }

    #[test]
    fn a_path_must_be_short_ascii() {
        let error = |path: &str| {
            let error = Payload::new(AllowedLuids::NONE, path).unwrap_err();
            assert_eq!(payload(&[]).set_32_bit_filter(path), Err(error));
            error
        };
        assert_eq!(error(&"a".repeat(260)), "is longer than 259 characters");
        assert_eq!(error("C:\\Ünicode.dll"), "has characters that are not ASCII");
        assert_eq!(error("C:\\a\nb.dll"), "has characters that are not ASCII");
    }

    #[test]
    fn only_a_program_and_verbose_children_report_what_is_not_filtered() {
        let program = payload(&[]);
        let child = Payload { flags: CHILD, ..program };
        let verbose = Payload { flags: CHILD | VERBOSE, ..child };
        assert!(program.reports() && !child.reports() && verbose.reports());
        // A program of an inner launcher is a child of the outer one.
        assert!(program.within(&child).reports() && !child.within(&child).reports());
        assert!(child.within(&verbose).reports());
    }

    #[test]
    fn an_outer_launcher_limits_an_inner_one() {
        let outer = Payload { flags: REQUIRED, ..payload(&[1, 2]) };
        let inner = payload(&[2, 3]).within(&outer);
        assert_eq!(inner, Payload { flags: REQUIRED, ..payload(&[2]) });
    }
}
