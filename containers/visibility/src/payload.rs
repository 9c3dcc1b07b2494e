//! What the filter is told in a process: a block of bytes that lies before the process's
//! import table.

use crate::AllowedLuids;
use crate::architecture::Architecture;

/// Distinguishes a payload, and its version, from other bytes.
const MAGIC: [u8; 8] = *b"DXVisib3";

/// The longest path of the filter in bytes; with the NUL after it, as long as Windows' own
/// limit.
pub const MAX_PATH_LENGTH: usize = 259;

/// Offsets of the fields.
const FLAGS: usize = 8;
const COUNT: usize = 12;
const LUIDS: usize = 16;
const PATH: usize = LUIDS + AllowedLuids::BYTES;
const PATH_32: usize = PATH + PATH_SIZE;

/// The size of a path with the NUL after it.
const PATH_SIZE: usize = MAX_PATH_LENGTH + 1;

/// Its size; a multiple of 8.
pub(crate) const SIZE: usize = PATH_32 + PATH_SIZE;

/// Flags: [`Unfiltered::Refuse`]; the fields of the same names.
const REFUSE: u32 = 1;
const VERBOSE: u32 = 2;
const CHILD: u32 = 4;

/// What happens to a process that cannot be filtered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfiltered {
    /// It runs and sees every adapter.
    Allow,
    /// It does not run.
    Refuse,
}

/// What the filter is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload {
    allowed: AllowedLuids,
    unfiltered: Unfiltered,
    /// Whether child processes report what is not filtered.
    is_verbose: bool,
    /// Whether a program started the process, and not the launcher.
    is_child: bool,
    /// The filters for 64-bit and for 32-bit programs.
    paths: [FilterPath; 2],
}

/// A path in ASCII, with zeros after it; all zeros if there is none.
type FilterPath = [u8; PATH_SIZE];

/// Why there can be no payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PayloadError {
    /// The path of the filter is empty or longer than [`MAX_PATH_LENGTH`].
    PathLength,
    /// It is not ASCII; names of imported libraries have no certain encoding.
    PathEncoding,
}

impl Payload {
    /// A payload for a filter that lies at `path`, an absolute path. 32-bit programs are not
    /// filtered.
    pub fn new(
        allowed: AllowedLuids,
        unfiltered: Unfiltered,
        path: &str,
    ) -> Result<Payload, PayloadError> {
        let paths = [filter_path(path)?, [0; PATH_SIZE]];
        Ok(Payload { allowed, unfiltered, is_verbose: false, is_child: false, paths })
    }

    /// This payload, with a filter for 32-bit programs that lies at `path`.
    pub fn with_32_bit_filter(mut self, path: &str) -> Result<Payload, PayloadError> {
        self.paths[1] = filter_path(path)?;
        Ok(self)
    }

    /// This payload, with which child processes report what is not filtered.
    #[must_use]
    pub fn verbose(self) -> Payload {
        Payload { is_verbose: true, ..self }
    }

    /// The payload for a child of the process.
    #[must_use]
    pub fn for_child(self) -> Payload {
        Payload { is_child: true, ..self }
    }

    /// Whether a process reports that something of it is not filtered, if it runs nevertheless.
    #[must_use]
    pub fn reports(&self) -> bool {
        self.is_verbose || !self.is_child
    }

    /// The adapters that the process may see.
    #[must_use]
    pub fn allowed(&self) -> &AllowedLuids {
        &self.allowed
    }

    /// What happens to processes that cannot be filtered.
    #[must_use]
    pub fn unfiltered(&self) -> Unfiltered {
        self.unfiltered
    }

    /// The path of the filter for programs of this architecture, in ASCII; empty if there is
    /// none.
    #[must_use]
    pub fn path(&self, architecture: Architecture) -> &[u8] {
        let path = match architecture {
            Architecture::X64 => &self.paths[0],
            Architecture::X86 => &self.paths[1],
        };
        let end = path.iter().position(|byte| *byte == 0).unwrap_or(MAX_PATH_LENGTH);
        &path[..end]
    }

    /// Where [`Payload::path`] lies in a payload.
    pub(crate) fn path_offset(architecture: Architecture) -> usize {
        match architecture {
            Architecture::X64 => PATH,
            Architecture::X86 => PATH_32,
        }
    }

    /// This payload, limited by that of an outer launcher.
    #[must_use]
    pub fn within(mut self, outer: &Payload) -> Payload {
        self.allowed = self.allowed.and(&outer.allowed);
        if outer.unfiltered == Unfiltered::Refuse {
            self.unfiltered = Unfiltered::Refuse;
        }
        self.is_verbose |= outer.is_verbose;
        self.is_child &= outer.is_child;
        self
    }

    /// Writes the payload.
    pub(crate) fn write(&self, bytes: &mut [u8; SIZE]) {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(self.unfiltered == Unfiltered::Refuse, REFUSE)
            | flag(self.is_verbose, VERBOSE)
            | flag(self.is_child, CHILD);
        let count = u32::try_from(self.allowed.as_slice().len()).unwrap_or_default();
        bytes[..FLAGS].copy_from_slice(&MAGIC);
        for (at, value) in [(FLAGS, flags), (COUNT, count)] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        for (n, luid) in self.allowed.as_slice().iter().enumerate() {
            let at = LUIDS + n * 8;
            bytes[at..at + 8].copy_from_slice(&luid.to_le_bytes());
        }
        for (at, path) in [PATH, PATH_32].into_iter().zip(&self.paths) {
            bytes[at..at + PATH_SIZE].copy_from_slice(path);
        }
    }

    /// Reads what [`Payload::write`] wrote; `None` for other bytes.
    pub(crate) fn read(bytes: &[u8; SIZE]) -> Option<Payload> {
        let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        if bytes[..FLAGS] != MAGIC {
            return None;
        }
        let count = usize::try_from(number(COUNT)?).ok()?;
        let list = bytes.get(LUIDS..LUIDS.checked_add(count.checked_mul(8)?)?)?;
        let luids = list.chunks_exact(8).filter_map(|luid| luid.try_into().ok());
        let allowed = AllowedLuids::new(luids.map(i64::from_le_bytes)).ok()?;
        let flags = number(FLAGS)?;
        let unfiltered = if flags & REFUSE == 0 { Unfiltered::Allow } else { Unfiltered::Refuse };
        let (is_verbose, is_child) = (flags & VERBOSE != 0, flags & CHILD != 0);
        let path = |at: usize| bytes.get(at..at + PATH_SIZE)?.try_into().ok();
        let paths = [path(PATH)?, path(PATH_32)?];
        Some(Payload { allowed, unfiltered, is_verbose, is_child, paths })
    }
}

fn filter_path(path: &str) -> Result<FilterPath, PayloadError> {
    if path.is_empty() || path.len() > MAX_PATH_LENGTH {
        return Err(PayloadError::PathLength);
    }
    if !path.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
        return Err(PayloadError::PathEncoding);
    }
    let mut bytes = [0; PATH_SIZE];
    bytes[..path.len()].copy_from_slice(path.as_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            luids in proptest::collection::vec(any::<i64>(), 0..=64),
            path in "[ -~]{1,259}",
            path_32 in "[ -~]{0,259}",
            flags: [bool; 3],
        ) {
            let unfiltered = if flags[0] { Unfiltered::Refuse } else { Unfiltered::Allow };
            let allowed = AllowedLuids::new(luids).unwrap();
            let mut payload = Payload::new(allowed, unfiltered, &path).unwrap();
            if !path_32.is_empty() {
                payload = payload.with_32_bit_filter(&path_32).unwrap();
            }
            payload = if flags[1] { payload.verbose() } else { payload };
            payload = if flags[2] { payload.for_child() } else { payload };
            prop_assert_eq!(payload.path(Architecture::X64), path.as_bytes());
            prop_assert_eq!(payload.path(Architecture::X86), path_32.as_bytes());
            let mut bytes = [0; SIZE];
            payload.write(&mut bytes);
            prop_assert_eq!(Payload::read(&bytes), Some(payload));
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
            prop_assert!(magic || found.is_none());
        }
    }

    #[test]
    fn a_path_must_be_short_ascii() {
        let allow = |path: &str| Payload::new(AllowedLuids::NONE, Unfiltered::Allow, path);
        let new = |path: &str| {
            let with_32_bit = allow(r"C:\filter.dll").unwrap().with_32_bit_filter(path).err();
            assert_eq!(allow(path).err(), with_32_bit);
            with_32_bit
        };
        assert_eq!(new(""), Some(PayloadError::PathLength));
        assert_eq!(new(&"a".repeat(260)), Some(PayloadError::PathLength));
        assert_eq!(new("C:\\Ünicode.dll"), Some(PayloadError::PathEncoding));
        assert_eq!(new("C:\\a\nb.dll"), Some(PayloadError::PathEncoding));
    }

    #[test]
    fn only_a_program_and_verbose_children_report_what_is_not_filtered() {
        let program = Payload::new(AllowedLuids::NONE, Unfiltered::Allow, "C:\\f.dll").unwrap();
        let child = program.for_child();
        assert!(program.reports() && !child.reports() && child.verbose().reports());
        // A program of an inner launcher is a child of the outer one.
        assert!(program.within(&child).reports() && !child.within(&child).reports());
        assert!(child.within(&child.verbose()).reports());
    }

    #[test]
    fn an_outer_launcher_limits_an_inner_one() {
        let payload = |luids: &[i64], unfiltered| {
            let allowed = AllowedLuids::new(luids.iter().copied()).unwrap();
            Payload::new(allowed, unfiltered, "C:\\filter.dll").unwrap()
        };
        let outer = payload(&[1, 2], Unfiltered::Refuse);
        let inner = payload(&[2, 3], Unfiltered::Allow).within(&outer);
        assert_eq!(inner, payload(&[2], Unfiltered::Refuse));
    }
}
