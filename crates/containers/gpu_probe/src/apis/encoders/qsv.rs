//! Quick Sync Video: a session of Intel's encoder, and the codecs that it knows.
#![allow(unsafe_code, reason = "calls Intel's encoder")]

use std::ffi::c_void;
use std::ptr::null_mut;

use super::structure::{Field, Structure};
use crate::library::{Loaded, check, functions};
use crate::outcome::{DeviceInfo, Fault, Measurement};
use crate::session::{Candidate, Devices, Refusal, Work};

/// The runtime of newer processors, then the runtime of older ones.
pub(crate) const NAMES: &[&str] = if cfg!(windows) {
    &["libmfx64-gen.dll", "libmfxhw64.dll"]
} else {
    &["libmfx-gen.so.1.2", "libmfxhw64.so.1"]
};

// The values of oneVPL's `vpl/mfxcommon.h`, `mfxdefs.h` and `mfxstructures.h`. A test compares the
// size and the offset with them.
const HARDWARE: i32 = 2;
const VIA: i32 = if cfg!(windows) { 0x300 } else { 0x400 };
const VERSION_1_0: u32 = 1 << 16;
const UNSUPPORTED: i32 = -3;
const NOT_FOUND: i32 = -9;
const PARAMETERS: usize = 208;
const CODEC: Field = 116;
/// Codecs by the names of their measurement.
const CODECS: [(&str, [u8; 4]); 3] =
    [("H.264 encoder", *b"AVC "), ("HEVC encoder", *b"HEVC"), ("AV1 encoder", *b"AV1 ")];

/// A session.
type Handle = *mut c_void;

functions! {
    /// The functions of `vpl/mfxsession.h` and `vpl/mfxvideo.h`.
    Functions {
        start = "MFXInit" fn(i32, *mut u32, *mut Handle) -> i32;
        version = "MFXQueryVersion" fn(Handle, *mut u32) -> i32;
        query = "MFXVideoENCODE_Query" fn(Handle, *mut u64, *mut u64) -> i32;
    }
}

/// Opens a session.
pub(crate) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Functions::load(&library)?;
    let (mut version, mut session) = (VERSION_1_0, null_mut());
    // SAFETY: there is room for the version and the session.
    let status = unsafe { (functions.start)(HARDWARE | VIA, &raw mut version, &raw mut session) };
    if matches!(status, UNSUPPORTED | NOT_FOUND) {
        return Err(Refusal::Absent(Fault::new("no Intel GPU has an encoder")));
    }
    // Positive values are warnings, here and below.
    check("MFXInit", status.min(0))?;
    // SAFETY: the session is open, and there is room for the version.
    let status = unsafe { (functions.version)(session, &raw mut version) };
    check("MFXQueryVersion", status.min(0))?;
    let codecs = CODECS.iter().filter(|(_, codec)| has_encoder(functions, session, *codec));
    let values: Vec<_> = codecs.map(|(name, _)| Measurement::new(name, 1.0, "")).collect();
    let work = Work::Known(if values.is_empty() {
        Err(Fault::new("the session has no encoder for H.264, HEVC or AV1"))
    } else {
        Ok(values)
    });
    let info = DeviceInfo { name: "encoder session".to_owned(), ..DeviceInfo::default() };
    let version = format!("Quick Sync Video {}.{}", version >> 16, version & 0xffff);
    Ok((Some(version), vec![Candidate { info, work }]))
}

/// Without input, the runtime says which parameters of a codec it knows, or that it has none.
fn has_encoder(functions: Functions, session: Handle, codec: [u8; 4]) -> bool {
    let mut parameters = Structure::new(PARAMETERS).with_u32(CODEC, u32::from_le_bytes(codec));
    let none = null_mut();
    // SAFETY: the structure has the size of the header's.
    let status = unsafe { (functions.query)(session, none, parameters.start()) };
    status >= 0
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs the headers of oneVPL; `cargo xtask test gpu` installs them"]
    fn the_structure_is_that_of_the_header() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("check.c");
        let program = format!(
            "#include <stddef.h>\n#include <vpl/mfxvideo.h>\n\
             _Static_assert(sizeof(mfxVideoParam) == {PARAMETERS}, \"size\");\n\
             _Static_assert(offsetof(mfxVideoParam, mfx.CodecId) == {CODEC}, \"codec\");\n\
             _Static_assert((MFX_IMPL_HARDWARE | MFX_IMPL_VIA_VAAPI) == {}, \"hardware\");\n\
             _Static_assert(MFX_CODEC_HEVC == {}, \"HEVC\");\n",
            HARDWARE | VIA,
            u32::from_le_bytes(CODECS[1].1)
        );
        std::fs::write(&source, program).unwrap();
        let mut compiler = std::process::Command::new("cc");
        let output = compiler.args(["-fsyntax-only"]).arg(&source).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
