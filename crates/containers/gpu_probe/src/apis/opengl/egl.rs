//! Contexts of EGL: one for each device, without a window system.
#![allow(unsafe_code, reason = "calls libEGL")]

use std::ffi::{CString, c_char, c_void};
use std::ptr::{null, null_mut};

use super::Contexts;
use crate::library::{Loaded, Symbols, functions};
use crate::outcome::Fault;
use crate::session::Refusal;

pub(in super::super) const NAMES: &[&str] = &["libEGL.so.1"];

// The values of `EGL/egl.h` and `EGL/eglext.h`.
const NONE: i32 = 0x3038;
const SURFACE_TYPE: i32 = 0x3033;
const PBUFFER: i32 = 1;
const RENDERABLE_TYPE: i32 = 0x3040;
const OPENGL: i32 = 8;
const OPENGL_API: u32 = 0x30a2;
const CONTEXT_MAJOR_VERSION: i32 = 0x3098;
const CONTEXT_MINOR_VERSION: i32 = 0x30fb;
const PLATFORM_DEVICE: u32 = 0x313f;
/// `EGL_BAD_PARAMETER`: what `libEGL` says if no driver is installed.
const BAD_PARAMETER: i32 = 0x300c;

/// The most devices that are tested.
const MOST_DEVICES: u8 = 64;

/// A device, display, configuration or context.
type Handle = *mut c_void;

functions! {
    /// The functions of `EGL/egl.h`.
    Functions {
        address = "eglGetProcAddress" fn(*const c_char) -> *mut ();
        error = "eglGetError" fn() -> i32;
        initialize = "eglInitialize" fn(Handle, *mut i32, *mut i32) -> u32;
        bind = "eglBindAPI" fn(u32) -> u32;
        choose = "eglChooseConfig" fn(Handle, *const i32, *mut Handle, i32, *mut i32) -> u32;
        context = "eglCreateContext" fn(Handle, Handle, Handle, *const i32) -> Handle;
        make_current = "eglMakeCurrent" fn(Handle, Handle, Handle, Handle) -> u32;
    }
}

functions! {
    /// The functions of the extensions `EGL_EXT_device_enumeration` and `EGL_EXT_platform_base`.
    Extensions {
        devices = "eglQueryDevicesEXT" fn(i32, *mut Handle, *mut i32) -> u32;
        display = "eglGetPlatformDisplayEXT" fn(u32, Handle, *const i32) -> Handle;
    }
}

/// A context that is never destroyed.
pub(super) struct Context {
    functions: Functions,
    display: Handle,
    handle: Handle,
}

/// The functions of extensions and of OpenGL.
impl Symbols for Functions {
    fn function(&self, symbol: &'static str) -> Result<*mut (), Fault> {
        let name = CString::new(symbol).map_err(|error| Fault::new(error.to_string()))?;
        // SAFETY: the name ends with a NUL.
        let address = unsafe { (self.address)(name.as_ptr()) };
        if address.is_null() {
            return Err(Fault::new(format!("libEGL.so.1 has no function `{symbol}`")));
        }
        Ok(address)
    }
}

impl Symbols for Context {
    fn function(&self, symbol: &'static str) -> Result<*mut (), Fault> {
        self.functions.function(symbol)
    }
}

pub(super) fn contexts(library: Loaded) -> Result<Contexts, Refusal> {
    let functions = Functions::load(&library)?;
    let extensions = Extensions::load(&functions)?;
    let mut version = None;
    let contexts = devices(functions, extensions)?
        .into_iter()
        .map(|device| {
            let (context, found) = Context::create(functions, extensions, device)?;
            version.get_or_insert(found);
            Ok(context)
        })
        .collect();
    Ok((version, contexts))
}

fn devices(functions: Functions, extensions: Extensions) -> Result<Vec<Handle>, Fault> {
    let mut devices = vec![null_mut(); usize::from(MOST_DEVICES)];
    let mut count = 0;
    // SAFETY: the list has the length that is passed.
    let found =
        unsafe { (extensions.devices)(MOST_DEVICES.into(), devices.as_mut_ptr(), &raw mut count) };
    if found == 0 {
        // SAFETY: the function has no requirements.
        return match unsafe { (functions.error)() } {
            BAD_PARAMETER => Ok(Vec::new()),
            error => Err(Fault::new(format!("eglQueryDevicesEXT failed with {error:#06x}"))),
        };
    }
    let count = usize::try_from(count)
        .map_err(|_| Fault::new(format!("eglQueryDevicesEXT returned {count} devices")))?;
    devices.truncate(count);
    Ok(devices)
}

impl Context {
    /// The context of `device`, and the version of EGL.
    fn create(
        functions: Functions,
        extensions: Extensions,
        device: Handle,
    ) -> Result<(Context, String), Fault> {
        // SAFETY: here and below, handles come from earlier calls and are never destroyed, lists
        // end with `NONE`, and pointers are valid during the call.
        let display = unsafe { (extensions.display)(PLATFORM_DEVICE, device, null()) };
        functions.check("eglGetPlatformDisplayEXT", !display.is_null())?;
        let mut major = 0;
        let mut minor = 0;
        // SAFETY: as above.
        let done = unsafe { (functions.initialize)(display, &raw mut major, &raw mut minor) };
        functions.check("eglInitialize", done != 0)?;
        // SAFETY: as above.
        functions.check("eglBindAPI", unsafe { (functions.bind)(OPENGL_API) } != 0)?;
        let wanted = [SURFACE_TYPE, PBUFFER, RENDERABLE_TYPE, OPENGL, NONE];
        let mut config = null_mut();
        let mut count = 0;
        // SAFETY: as above; there is room for one configuration.
        let done = unsafe {
            let config = &raw mut config;
            let count = &raw mut count;
            (functions.choose)(display, wanted.as_ptr(), config, 1, count)
        };
        functions.check("eglChooseConfig", done != 0)?;
        if count == 0 {
            return Err(Fault::new("the device has no configuration for OpenGL"));
        }
        let version = [CONTEXT_MAJOR_VERSION, 4, CONTEXT_MINOR_VERSION, 3, NONE];
        // SAFETY: as above.
        let handle = unsafe { (functions.context)(display, config, null_mut(), version.as_ptr()) };
        functions.check("eglCreateContext", !handle.is_null())?;
        Ok((Context { functions, display, handle }, format!("EGL {major}.{minor}")))
    }

    /// Makes OpenGL use this context in this thread.
    pub(super) fn make_current(&self) -> Result<(), Fault> {
        let Context { functions, display, handle } = self;
        // SAFETY: the context belongs to the display. Without surfaces, it can only compute.
        let done = unsafe { (functions.make_current)(*display, null_mut(), null_mut(), *handle) };
        functions.check("eglMakeCurrent", done != 0)
    }
}

impl Functions {
    fn check(self, call: &str, is_done: bool) -> Result<(), Fault> {
        if is_done {
            return Ok(());
        }
        // SAFETY: the function has no requirements.
        let error = unsafe { (self.error)() };
        Err(Fault::new(format!("{call} failed with {error:#06x}")))
    }
}
