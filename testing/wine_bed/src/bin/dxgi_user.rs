//! Lists adapters with every function of DXGI, as the tests of the visibility filter need it.
//!
//! The program imports `dxgi.dll` and gets its factory in one of several ways; then it
//! prints what each function lists, and whether adapters are found by their LUIDs.

// COM interfaces and functions of libraries are unsafe to call.
#![cfg_attr(windows, allow(unsafe_code))]

#[cfg(windows)]
mod windows_program {
    use std::ffi::c_void;
    use std::mem::transmute;

    use anyhow::{Context as _, Result, bail};
    use windows::Win32::Foundation::{FreeLibrary, HMODULE, LUID};
    use windows::Win32::Graphics::Direct3D::D3D_DRIVER_TYPE_HARDWARE;
    use windows::Win32::Graphics::Direct3D11::{
        D3D11_CREATE_DEVICE_FLAG, D3D11_SDK_VERSION, ID3D11Device,
    };
    use windows::Win32::Graphics::Dxgi::{
        CreateDXGIFactory1, DXGI_ERROR_NOT_FOUND, DXGI_GPU_PREFERENCE_UNSPECIFIED, IDXGIAdapter1,
        IDXGIDevice, IDXGIFactory6,
    };
    use windows::Win32::System::LibraryLoader::{GetProcAddress, LoadLibraryW};
    use windows::core::{GUID, HRESULT, HSTRING, Interface as _, PCSTR, s};

    type Function = unsafe extern "system" fn() -> isize;
    type Create = unsafe extern "system" fn(*const GUID, *mut *mut c_void) -> HRESULT;
    type Create2 = unsafe extern "system" fn(u32, *const GUID, *mut *mut c_void) -> HRESULT;
    type CreateDevice = unsafe extern "system" fn(
        *mut c_void,
        i32,
        HMODULE,
        D3D11_CREATE_DEVICE_FLAG,
        *const i32,
        u32,
        u32,
        *mut *mut c_void,
        *mut i32,
        *mut *mut c_void,
    ) -> HRESULT;

    /// `way` is `imported`, `d3d11`, or the path of another `dxgi.dll`, which is loaded twice;
    /// or `load`, which loads other libraries and lists nothing.
    pub(crate) fn run(way: &str, luids: &[String]) -> Result<()> {
        match way {
            // SAFETY: the function has no preconditions.
            "imported" => print(&unsafe { CreateDXGIFactory1() }?, luids),
            "d3d11" => print(&factory_of_device()?, luids),
            "load" => {
                for path in luids {
                    // SAFETY: the entry points of these libraries run in processes like this.
                    unsafe { LoadLibraryW(&HSTRING::from(path.as_str())) }?;
                }
                println!("loaded");
                Ok(())
            }
            path => {
                for function in [s!("CreateDXGIFactory"), s!("CreateDXGIFactory2")] {
                    let (library, factory) = created(path, function)?;
                    print(&factory, luids)?;
                    drop(factory);
                    // SAFETY: nothing of the library is used any more.
                    unsafe { FreeLibrary(library) }?;
                }
                Ok(())
            }
        }
    }

    /// A factory from a function with this name, which is looked up.
    fn created(library: &str, name: PCSTR) -> Result<(HMODULE, IDXGIFactory6)> {
        // SAFETY: the name is null-terminated.
        let module = unsafe { LoadLibraryW(&HSTRING::from(library)) }?;
        // SAFETY: the library is loaded, and the name is null-terminated.
        let function = unsafe { GetProcAddress(module, name) }.context("no such function")?;
        let (id, mut factory) = (IDXGIFactory6::IID, std::ptr::null_mut());
        // SAFETY: the names belong to functions with these signatures.
        let result = unsafe {
            if name.as_bytes().ends_with(b"2") {
                transmute::<Function, Create2>(function)(0, &raw const id, &raw mut factory)
            } else {
                transmute::<Function, Create>(function)(&raw const id, &raw mut factory)
            }
        };
        result.ok()?;
        // SAFETY: a successful call returns this interface, which the value owns.
        Ok((module, unsafe { IDXGIFactory6::from_raw(factory) }))
    }

    /// The factory of a device that Direct3D 11 has made without being given an adapter.
    fn factory_of_device() -> Result<IDXGIFactory6> {
        // SAFETY: the name is null-terminated.
        let module = unsafe { LoadLibraryW(&HSTRING::from("d3d11.dll")) }?;
        // SAFETY: the library is loaded, and the name is null-terminated.
        let function = unsafe { GetProcAddress(module, s!("D3D11CreateDevice")) };
        let function = function.context("no such function")?;
        // SAFETY: the function has this signature.
        let create = unsafe { transmute::<Function, CreateDevice>(function) };
        let (none, mut device) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the pointers are null or those of local variables.
        let result = unsafe {
            create(
                none,
                D3D_DRIVER_TYPE_HARDWARE.0,
                HMODULE::default(),
                D3D11_CREATE_DEVICE_FLAG::default(),
                std::ptr::null(),
                0,
                D3D11_SDK_VERSION,
                &raw mut device,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        result.ok()?;
        // SAFETY: a successful call returns this interface, which the value owns.
        let device: IDXGIDevice = unsafe { ID3D11Device::from_raw(device) }.cast()?;
        // SAFETY: the device is alive.
        let adapter: IDXGIAdapter1 = unsafe { device.GetAdapter() }?.cast()?;
        println!("device {}", luid(&adapter)?);
        // SAFETY: the adapter is alive.
        Ok(unsafe { adapter.GetParent() }?)
    }

    fn print(factory: &IDXGIFactory6, luids: &[String]) -> Result<()> {
        // SAFETY, for the four functions: the factory is alive.
        list("EnumAdapters", |n| unsafe { factory.EnumAdapters(n) }?.cast())?;
        list("EnumAdapters1", |n| unsafe { factory.EnumAdapters1(n) })?;
        list("EnumAdapterByGpuPreference", |n| unsafe {
            factory.EnumAdapterByGpuPreference(n, DXGI_GPU_PREFERENCE_UNSPECIFIED)
        })?;
        for text in luids {
            let wanted: i64 = text.parse()?;
            let id = LUID {
                LowPart: u32::try_from(wanted & 0xFFFF_FFFF)?,
                HighPart: i32::try_from(wanted >> 32)?,
            };
            match unsafe { factory.EnumAdapterByLuid::<IDXGIAdapter1>(id) } {
                Ok(adapter) => println!("found {text} as {}", luid(&adapter)?),
                Err(error) => println!("found {text} not: {:08X}", error.code().0),
            }
        }
        Ok(())
    }

    fn list(
        name: &str,
        adapter: impl Fn(u32) -> windows::core::Result<IDXGIAdapter1>,
    ) -> Result<()> {
        let mut luids = Vec::new();
        for n in 0..100 {
            match adapter(n) {
                Ok(adapter) => luids.push(luid(&adapter)?.to_string()),
                Err(error) if error.code() == DXGI_ERROR_NOT_FOUND => {
                    println!("{name} {}", luids.join(","));
                    return Ok(());
                }
                Err(error) => bail!("{name}: {error}"),
            }
        }
        bail!("{name} has no end")
    }

    fn luid(adapter: &IDXGIAdapter1) -> Result<i64> {
        // SAFETY: the adapter is alive.
        let LUID { LowPart, HighPart } = unsafe { adapter.GetDesc1() }?.AdapterLuid;
        Ok((i64::from(HighPart) << 32) | i64::from(LowPart))
    }
}

#[cfg(windows)]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, luids @ ..] = arguments.as_slice() else {
        eprintln!("usage: dxgi_user imported|d3d11|DLL [LUID]... | load DLL...");
        return ExitCode::from(2);
    };
    match windows_program::run(way, luids) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(windows))]
fn main() {
    eprintln!("error: dxgi_user runs only on Windows\nhint: run it with `testing/wine/wine`");
    std::process::exit(2);
}
