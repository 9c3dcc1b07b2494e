//! The context of WGL, which needs a hidden window. Windows chooses its device.
#![allow(unsafe_code, reason = "calls opengl32.dll, gdi32.dll and user32.dll")]

use std::ffi::{CString, c_char, c_void};
use std::io;
use std::ptr::null_mut;

use windows::Win32::Graphics::OpenGL::{
    PFD_DRAW_TO_WINDOW, PFD_SUPPORT_OPENGL, PIXELFORMATDESCRIPTOR,
};

use super::Contexts;
use crate::api::Api;
use crate::library::{Loaded, Symbols, functions};
use crate::outcome::Fault;
use crate::session::Refusal;

pub(in super::super) const NAMES: &[&str] = &["opengl32.dll"];

/// A window, device context or OpenGL context.
type Handle = *mut c_void;

/// The size of a `PIXELFORMATDESCRIPTOR`, in the type of its field.
#[expect(clippy::cast_possible_truncation, reason = "it has 40 bytes")]
const FORMAT_SIZE: u16 = size_of::<PIXELFORMATDESCRIPTOR>() as u16;

functions! {
    /// The functions of `winuser.h`.
    Windows {
        create = "CreateWindowExW" fn(u32, *const u16, *const u16, u32, i32, i32, i32, i32, Handle,
            Handle, Handle, *mut c_void) -> Handle;
        device_context = "GetDC" fn(Handle) -> Handle;
    }
}

functions! {
    /// The functions of `wingdi.h` in `gdi32.dll`.
    PixelFormats {
        choose = "ChoosePixelFormat" fn(Handle, *const PIXELFORMATDESCRIPTOR) -> i32;
        set = "SetPixelFormat" fn(Handle, i32, *const PIXELFORMATDESCRIPTOR) -> i32;
    }
}

functions! {
    /// The functions of `wingdi.h` in `opengl32.dll`.
    Functions {
        create = "wglCreateContext" fn(Handle) -> Handle;
        make_current = "wglMakeCurrent" fn(Handle, Handle) -> i32;
        address = "wglGetProcAddress" fn(*const c_char) -> *mut ();
    }
}

/// A context that is never destroyed.
pub(super) struct Context {
    functions: Functions,
    /// Exports the functions of OpenGL 1.1.
    library: Loaded,
    device: Handle,
    handle: Handle,
}

impl Symbols for Context {
    fn function(&self, symbol: &'static str) -> Result<*mut (), Fault> {
        let name = CString::new(symbol).map_err(|error| Fault::new(error.to_string()))?;
        // SAFETY: the name ends with a NUL, and the context is current.
        let address = unsafe { (self.functions.address)(name.as_ptr()) };
        // Some drivers return small numbers for functions that they do not have
        // (wglGetProcAddress in the OpenGL wiki).
        if matches!(address as isize, -1..=3) { self.library.function(symbol) } else { Ok(address) }
    }
}

pub(super) fn contexts(library: Loaded) -> Result<Contexts, Refusal> {
    let windows = Loaded::open(Api::Opengl, &["user32.dll"])?;
    let formats = Loaded::open(Api::Opengl, &["gdi32.dll"])?;
    Ok((None, vec![Ok(Context::create(library, &windows, &formats)?)]))
}

impl Context {
    fn create(library: Loaded, windows: &Loaded, formats: &Loaded) -> Result<Context, Fault> {
        let functions = Functions::load(&library)?;
        let device = hidden_window(Windows::load(windows)?)?;
        let formats = PixelFormats::load(formats)?;
        let wanted = PIXELFORMATDESCRIPTOR {
            nSize: FORMAT_SIZE,
            nVersion: 1,
            dwFlags: PFD_DRAW_TO_WINDOW | PFD_SUPPORT_OPENGL,
            cColorBits: 32,
            ..PIXELFORMATDESCRIPTOR::default()
        };
        // SAFETY: here and below, handles come from earlier calls and are never destroyed, and
        // pointers are valid during the call.
        let format = unsafe { (formats.choose)(device, &raw const wanted) };
        check("ChoosePixelFormat", format != 0)?;
        // SAFETY: as above.
        let done = unsafe { (formats.set)(device, format, &raw const wanted) };
        check("SetPixelFormat", done != 0)?;
        // SAFETY: as above.
        let handle = unsafe { (functions.create)(device) };
        check("wglCreateContext", !handle.is_null())?;
        Ok(Context { functions, library, device, handle })
    }

    /// Makes OpenGL use this context in this thread.
    pub(super) fn make_current(&self) -> Result<(), Fault> {
        // SAFETY: the context was created for this device context.
        let done = unsafe { (self.functions.make_current)(self.device, self.handle) };
        check("wglMakeCurrent", done != 0)
    }
}

/// The device context of a window of a class that Windows has. It is not shown.
fn hidden_window(functions: Windows) -> Result<Handle, Fault> {
    let class: Vec<u16> = "STATIC\0".encode_utf16().collect();
    let none = null_mut();
    // SAFETY: the name ends with a NUL.
    let window = unsafe {
        let title = class.as_ptr();
        (functions.create)(0, class.as_ptr(), title, 0, 0, 0, 8, 8, none, none, none, none)
    };
    check("CreateWindowEx", !window.is_null())
        .map_err(|fault| fault.hint("OpenGL needs a window, and this session has no desktop"))?;
    // SAFETY: the window was created by this thread.
    let device = unsafe { (functions.device_context)(window) };
    check("GetDC", !device.is_null())?;
    Ok(device)
}

/// Reads the last error of the thread, so it must directly follow the call.
fn check(call: &str, is_done: bool) -> Result<(), Fault> {
    if is_done {
        return Ok(());
    }
    Err(Fault::new(format!("{call} failed: {}", io::Error::last_os_error())))
}
