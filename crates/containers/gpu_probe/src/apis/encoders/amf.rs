//! AMF: the start of AMD's encoder runtime. Its further interfaces are C++ objects.
#![allow(unsafe_code, reason = "calls AMD's encoder runtime")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::library::{Loaded, check, functions};
use crate::outcome::{DeviceInfo, Fault};
use crate::session::{Candidate, Devices, Refusal, Work};

pub(crate) const NAMES: &[&str] =
    if cfg!(windows) { &["amfrt64.dll"] } else { &["libamfrt64.so.1"] };

functions! {
    /// The functions of `core/Factory.h`.
    Functions {
        version = "AMFQueryVersion" fn(*mut u64) -> i32;
        start = "AMFInit" fn(u64, *mut *mut c_void) -> i32;
    }
}

/// Starts the runtime.
pub(crate) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Functions::load(&library)?;
    let mut version = 0;
    // SAFETY: writes one number.
    check("AMFQueryVersion", unsafe { (functions.version)(&raw mut version) })?;
    let info = DeviceInfo { name: "encoder runtime".to_owned(), ..DeviceInfo::default() };
    let work = Work::Test(Box::new(move || start(functions, version).map(|()| Vec::new())));
    let [major, minor, release] = [48, 32, 16].map(|shift| version >> shift & 0xffff);
    Ok((Some(format!("AMF {major}.{minor}.{release}")), vec![Candidate { info, work }]))
}

fn start(functions: Functions, version: u64) -> Result<(), Fault> {
    let mut factory = null_mut();
    // SAFETY: the runtime has this version, and there is room for the object.
    check("AMFInit", unsafe { (functions.start)(version, &raw mut factory) })?;
    if factory.is_null() {
        return Err(Fault::new("AMFInit returned no object"));
    }
    Ok(())
}
