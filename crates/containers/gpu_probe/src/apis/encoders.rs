//! The vendors' video encoders: whether their libraries load, and which version they report.
//! No frame is encoded, so a GPU without an encoder is not found here.
#![allow(unsafe_code, reason = "calls the libraries of video encoders")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::library::{Loaded, check, functions};
use crate::outcome::Fault;
use crate::session::{Devices, Refusal};

pub(super) const NVENC: &[&str] =
    if cfg!(windows) { &["nvEncodeAPI64.dll"] } else { &["libnvidia-encode.so.1"] };
pub(super) const AMF: &[&str] = if cfg!(windows) { &["amfrt64.dll"] } else { &["libamfrt64.so.1"] };
/// The runtime of newer processors, then the runtime of older ones.
pub(super) const QSV: &[&str] = if cfg!(windows) {
    &["libmfx64-gen.dll", "libmfxhw64.dll"]
} else {
    &["libmfx-gen.so.1.2", "libmfxhw64.so.1"]
};

functions! {
    /// The function of `nvEncodeAPI.h`.
    Nvenc {
        version = "NvEncodeAPIGetMaxSupportedVersion" fn(*mut u32) -> i32;
    }
}

functions! {
    /// The function of AMF's `core/Factory.h`.
    Amf {
        version = "AMFQueryVersion" fn(*mut u64) -> i32;
    }
}

/// A session of Quick Sync Video.
type Session = *mut c_void;

functions! {
    /// The functions of oneVPL's `vpl/mfxsession.h`.
    Qsv {
        start = "MFXInit" fn(i32, *mut u32, *mut Session) -> i32;
        version = "MFXQueryVersion" fn(Session, *mut u32) -> i32;
    }
}

// The values of oneVPL's `vpl/mfxcommon.h` and `vpl/mfxdefs.h`.
const HARDWARE: i32 = 2;
/// `MFX_IMPL_VIA_D3D11` and `MFX_IMPL_VIA_VAAPI`.
const VIA: i32 = if cfg!(windows) { 0x300 } else { 0x400 };
const VERSION_1_0: u32 = 1 << 16;
const UNSUPPORTED: i32 = -3;
const NOT_FOUND: i32 = -9;

/// A library that loads may still fail to encode, as AMD's does in containers.
fn version_of(encoder: &str, number: &str) -> String {
    format!("{encoder} {number}, nothing encoded")
}

/// NVIDIA's NVENC.
pub(super) fn nvenc(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Nvenc::load(&library)?;
    let mut version = 0;
    // SAFETY: writes one number.
    let status = unsafe { (functions.version)(&raw mut version) };
    check("NvEncodeAPIGetMaxSupportedVersion", status)?;
    Ok((Some(version_of("NVENC", &format!("{}.{}", version >> 4, version & 0xf))), Vec::new()))
}

/// AMD's Advanced Media Framework.
pub(super) fn amf(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Amf::load(&library)?;
    let mut version = 0;
    // SAFETY: writes one number.
    let status = unsafe { (functions.version)(&raw mut version) };
    check("AMFQueryVersion", status)?;
    let [major, minor, release] = [48, 32, 16].map(|shift| version >> shift & 0xffff);
    Ok((Some(version_of("AMF", &format!("{major}.{minor}.{release}"))), Vec::new()))
}

/// Intel Quick Sync Video, whose version only a session reports.
pub(super) fn qsv(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Qsv::load(&library)?;
    let mut version = VERSION_1_0;
    let mut session = null_mut();
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
    let number = format!("{}.{}", version >> 16, version & 0xffff);
    Ok((Some(version_of("Quick Sync Video", &number)), Vec::new()))
}
