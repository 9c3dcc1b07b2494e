//! Checks that the Windows programs start on every Windows Server.
//!
//! A program whose imports Windows cannot find ends with 0xC0000135 before `main`. So the
//! shipped files may import only libraries that every edition of Windows Server since 2019
//! has, Server Core included. What only some hosts have is loaded at run time.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use object::LittleEndian as LE;
use object::pe::{ImageNtHeaders32, ImageNtHeaders64};
use object::read::FileKind;
use object::read::pe::{ImageNtHeaders, PeFile};

/// The libraries that the programs may import, in lower case, each with a function that they
/// import from it. According to the function's page in Microsoft's reference
/// (learn.microsoft.com/windows/win32/api), every Windows Server since 2012 or an earlier one
/// has it.
const SYSTEM: [(&str, &str); 13] = [
    ("advapi32.dll", "RegOpenKeyExW"),
    // API sets: Windows resolves these names itself (win32/apiindex/windows-apisets).
    ("api-ms-win-core-synch-l1-2-0.dll", "WaitOnAddress"),
    ("api-ms-win-core-winrt-error-l1-1-0.dll", "RoOriginateErrorW"),
    ("bcrypt.dll", "BCryptGenRandom"),
    ("bcryptprimitives.dll", "ProcessPrng"),
    // The implementation of the functions that ole32.dll exports.
    ("combase.dll", "CoCreateFreeThreadedMarshaler"),
    ("kernel32.dll", "CreateFileW"),
    // The C library of Windows's own programs, which MinGW uses.
    ("msvcrt.dll", "malloc"),
    ("ntdll.dll", "NtCreateFile"),
    ("oleaut32.dll", "SysFreeString"),
    ("rpcrt4.dll", "UuidCreate"),
    ("userenv.dll", "GetUserProfileDirectoryW"),
    ("ws2_32.dll", "WSAStartup"),
];

/// Our own library, which lies beside its clients.
const OWN: &str = "directx-device-discovery.dll";

/// The beginnings of the names of C and C++ libraries, and how to build without them.
const RUNTIMES: [(&str, &str); 8] = [
    ("vcruntime", STATIC_MSVC),
    ("msvcp", STATIC_MSVC),
    ("ucrtbase", STATIC_MSVC),
    ("api-ms-win-crt-", STATIC_MSVC),
    ("libgcc", STATIC_GNU),
    ("libstdc++", STATIC_GNU),
    ("libc++", STATIC_GNU),
    ("libwinpthread", STATIC_GNU),
];

const STATIC_MSVC: &str = "build with `-C target-feature=+crt-static`, as .cargo/config.toml \
    does; the variable RUSTFLAGS replaces the flags in that file";

const STATIC_GNU: &str = "link with `-static`";

const OTHER: &str = "load the library at run time, or add it to SYSTEM in xtask/src/imports.rs \
    if every Windows Server has it";

/// Checks files, each with its shipped name, and reports all failures.
pub(crate) fn check(files: &[(String, PathBuf)]) -> Result<()> {
    let mut faults = Vec::new();
    for (name, path) in files {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        faults.extend(check_bytes(name, &bytes).err().map(|fault| format!("{fault:#}")));
    }
    if faults.is_empty() { Ok(()) } else { bail!("{}", faults.join("\n")) }
}

/// Checks the PE file `bytes`, which is shipped as `name`.
pub(crate) fn check_bytes(name: &str, bytes: &[u8]) -> Result<()> {
    let imported = imported(bytes).with_context(|| format!("cannot read the imports of {name}"))?;
    match faults(name, &imported) {
        faults if faults.is_empty() => Ok(()),
        faults => bail!("{}", faults.join("\n")),
    }
}

/// A message for each library that not every Windows Server has.
fn faults(program: &str, imported: &[String]) -> Vec<String> {
    let is_allowed =
        |library: &str| library == OWN || SYSTEM.iter().any(|(allowed, _)| *allowed == library);
    let forbidden = imported.iter().filter(|library| !is_allowed(&library.to_lowercase()));
    let message = |library: &String| {
        format!(
            "{program} imports {library}, which not every Windows Server has\nhint: {}",
            fix(&library.to_lowercase())
        )
    };
    forbidden.map(message).collect()
}

fn fix(library: &str) -> &'static str {
    let runtime = RUNTIMES.iter().find(|(start, _)| library.starts_with(start));
    runtime.map_or(OTHER, |(_, fix)| fix)
}

/// The names of the libraries that a PE file imports, those with delayed loading included.
pub(crate) fn imported(file: &[u8]) -> Result<Vec<String>> {
    match FileKind::parse(file)? {
        FileKind::Pe32 => imported_as::<ImageNtHeaders32>(file),
        _ => imported_as::<ImageNtHeaders64>(file),
    }
}

fn imported_as<Headers: ImageNtHeaders>(file: &[u8]) -> Result<Vec<String>> {
    let pe = PeFile::<Headers>::parse(file)?;
    let mut names = Vec::new();
    if let Some(table) = pe.import_table()? {
        let mut descriptors = table.descriptors()?;
        while let Some(descriptor) = descriptors.next()? {
            names.push(text(table.name(descriptor.name.get(LE))?));
        }
    }
    let delayed = pe.data_directories().delay_load_import_table(file, &pe.section_table())?;
    if let Some(table) = delayed {
        let mut descriptors = table.descriptors()?;
        while let Some(descriptor) = descriptors.next()? {
            names.push(text(table.name(descriptor.dll_name_rva.get(LE))?));
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    /// Where the only section lies in memory and in the file.
    const SECTION: (u32, usize) = (0x1000, 0x200);

    /// A PE file that imports `normal` when it starts and `delayed` when it needs it.
    fn program(normal: &[&str], delayed: &[&str]) -> Vec<u8> {
        program_for(Machine::X86_64, normal, delayed)
    }

    fn program_for(machine: Machine, normal: &[&str], delayed: &[&str]) -> Vec<u8> {
        // The size and the magic number of the optional header, and where it has the number
        // of directories (winnt.h).
        let (size, magic, count) = match machine {
            Machine::X86 => (224, 0x10b_u16, 92),
            Machine::X86_64 => (240, 0x20b_u16, 108),
        };
        let mut file = vec![0; 0x1000];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        // DOS header, then the PE header with one section (winnt.h).
        put(0, b"MZ");
        put(0x3c, &0x40_u32.to_le_bytes());
        put(0x40, b"PE\0\0");
        put(0x44, &machine.number().to_le_bytes());
        put(0x46, &1_u16.to_le_bytes());
        put(0x54, &u16::to_le_bytes(size));
        put(0x58, &magic.to_le_bytes());
        put(0x58 + count, &16_u32.to_le_bytes());
        let section = 0x58 + usize::from(size);
        for (at, value) in [(8, 0xe00), (12, SECTION.0), (16, 0xe00), (20, 0x200)] {
            put(section + at, &u32::to_le_bytes(value));
        }
        let mut free = 0x600;
        // The directory, its place in the section, the size of an entry and the place of the
        // name in it: IMAGE_IMPORT_DESCRIPTOR and IMAGE_DELAYLOAD_DESCRIPTOR.
        for (names, directory, start, size, name_at) in
            [(normal, 1, 0, 20, 12), (delayed, 13, 0x200, 32, 4)]
        {
            let rva = |at: usize| (SECTION.0 + u32::try_from(at).unwrap()).to_le_bytes();
            if !names.is_empty() {
                put(0x58 + count + 4 + directory * 8, &rva(start));
                put(0x58 + count + 8 + directory * 8, &0x100_u32.to_le_bytes());
            }
            for (index, name) in names.iter().enumerate() {
                put(SECTION.1 + start + index * size + name_at, &rva(free));
                put(SECTION.1 + free, name.as_bytes());
                free += name.len() + 1;
            }
        }
        file
    }

    fn error(normal: &[&str], delayed: &[&str]) -> String {
        check_bytes("a.exe", &program(normal, delayed)).unwrap_err().to_string()
    }

    #[test]
    fn libraries_of_every_windows_server_are_accepted() {
        for imports in [&["KERNEL32.dll", "ws2_32.dll", "directx-device-discovery.dll"][..], &[]] {
            assert!(check_bytes("a.exe", &program(imports, &["ntdll.dll"])).is_ok());
        }
    }

    #[test]
    fn the_redistributable_of_visual_studio_is_an_error() {
        let found = error(&["KERNEL32.dll", "VCRUNTIME140.dll"], &[]);
        let start = "a.exe imports VCRUNTIME140.dll, which not every Windows Server has\nhint: \
            build with `-C target-feature=+crt-static`";
        assert!(found.starts_with(start), "{found}");
        assert_eq!(found.lines().count(), 2);
        let found = error(&["api-ms-win-crt-heap-l1-1-0.dll", "MSVCP140.dll"], &[]);
        assert_eq!(found.matches("+crt-static").count(), 2, "{found}");
    }

    #[test]
    fn delayed_imports_count() {
        let found = error(&["KERNEL32.dll"], &["dxcore.dll", "libgcc_s_seh-1.dll"]);
        assert!(found.contains("a.exe imports dxcore.dll, "), "{found}");
        assert!(found.contains("hint: load the library at run time"), "{found}");
        assert!(found.ends_with("hint: link with `-static`"), "{found}");
    }

    #[test]
    fn libraries_of_32_bit_programs_are_read() {
        let file = program_for(Machine::X86, &["ntdll.dll"], &["dxcore.dll"]);
        assert_eq!(imported(&file).unwrap(), ["dxcore.dll", "ntdll.dll"]);
    }

    #[test]
    fn a_file_that_is_no_program_is_an_error() {
        let mut cut = program(&["KERNEL32.dll"], &[]);
        cut.truncate(0x300);
        for bytes in [&b"MZ"[..], &cut] {
            let found = check_bytes("a.exe", bytes).unwrap_err().to_string();
            assert_eq!(found, "cannot read the imports of a.exe");
        }
    }

    #[test]
    fn msvc_builds_link_the_c_library_statically() {
        let config = fs::read_to_string(crate::workspace::root().join(".cargo/config.toml"));
        let expected = "[target.x86_64-pc-windows-msvc]\n\
            rustflags = [\"-C\", \"target-feature=+crt-static\"]\n";
        assert!(config.unwrap().contains(expected));
    }
}
