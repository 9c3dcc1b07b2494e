//! Checks of a Windows program that need no Windows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use object::{Object, ObjectSection};

/// The libraries that programs may import: every edition of Windows Server since 2019 has them,
/// Nano Server included, according to Microsoft's reference
/// (learn.microsoft.com/windows/win32/api). A program with another import ends with 0xC0000135
/// before `main`, so other libraries are loaded at run time. C libraries are linked statically:
/// with `-static`, or `+crt-static` for MSVC.
const SYSTEM: [&str; 17] = [
    "advapi32.dll",
    "api-ms-win-core-synch-l1-2-0.dll",
    "api-ms-win-core-winrt-error-l1-1-0.dll",
    "bcrypt.dll",
    "bcryptprimitives.dll",
    "combase.dll",
    // `schannel` imports these, with which the client of the API server reads the machine's
    // certificates. Only the program for the host imports them.
    "crypt32.dll",
    "kernel32.dll",
    // `windows-registry` imports this for transactions, which nothing uses; only an optimized
    // program lacks it.
    "ktmw32.dll",
    // This is the C library of Windows' own programs, which MinGW uses.
    "msvcrt.dll",
    "ncrypt.dll",
    "ntdll.dll",
    "oleaut32.dll",
    "rpcrt4.dll",
    "secur32.dll",
    "userenv.dll",
    "ws2_32.dll",
];

/// The imports and the version resource.
pub(crate) fn check(path: &Path, version: &str) {
    let bytes = fs::read(path).unwrap();
    for library in imports(&bytes) {
        assert!(SYSTEM.contains(&&*library), "{} imports {library}", path.display());
    }
    let resources = resources(&bytes);
    for text in [version, "DirectX device plugin for Kubernetes"] {
        let characters = utf16(text);
        let mut texts = resources.windows(characters.len());
        assert!(texts.any(|found| found == characters), "{} lacks {text}", path.display());
    }
}

/// The names of the imported libraries, in lower case.
pub(crate) fn imports(file: &[u8]) -> Vec<String> {
    let imports = object::File::parse(file).unwrap().imports().unwrap();
    let names =
        imports.iter().map(|import| String::from_utf8_lossy(import.library()).to_lowercase());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

fn resources(file: &[u8]) -> Vec<u8> {
    let file = object::File::parse(file).unwrap();
    file.section_by_name(".rsrc").unwrap().data().unwrap().to_owned()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}
