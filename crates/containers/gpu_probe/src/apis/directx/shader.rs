//! The compute shader of Direct3D 11 and 12.
#![allow(unsafe_code, reason = "calls d3dcompiler_47.dll")]

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

use windows::core::HRESULT;

use super::com::{blob, check};
use crate::api::Api;
use crate::library::{Loaded, functions};
use crate::outcome::Fault;

/// The shader, compiled for shader model 5, which every device accepts.
pub(super) const BYTECODE: &[u8] = include_bytes!("../../../kernels/mix.dxbc");

/// The source of the shader, for hosts that refuse the bytecode.
const SOURCE: &str = include_str!("../../../kernels/mix.hlsl");

functions! {
    /// The function of `d3dcompiler.h`.
    Functions {
        compile = "D3DCompile" fn(*const c_void, usize, *const c_char, *const c_void,
            *const c_void, *const c_char, *const c_char, u32, u32, *mut *mut c_void,
            *mut *mut c_void) -> HRESULT;
    }
}

/// Calls `create` with the bytecode, and if that fails, with the bytecode that this host compiles.
/// Returns the error of the first attempt.
pub(super) fn with_bytecode<T>(create: impl Fn(&[u8]) -> Result<T, Fault>) -> Result<T, Fault> {
    create(BYTECODE).or_else(|fault| match compile() {
        Ok(bytecode) => create(&bytecode),
        Err(_) => Err(fault),
    })
}

/// Compiles the source with the compiler of Windows.
pub(super) fn compile() -> Result<Vec<u8>, Fault> {
    let library = Loaded::open(Api::D3d11, &["d3dcompiler_47.dll"])?;
    let functions = Functions::load(&library)?;
    let mut code = null_mut();
    let mut errors = null_mut();
    // SAFETY: the source has this length, and the names end with a NUL.
    let result = unsafe {
        (functions.compile)(
            SOURCE.as_ptr().cast(),
            SOURCE.len(),
            null(),
            null(),
            null(),
            c"main".as_ptr(),
            c"cs_5_0".as_ptr(),
            0,
            0,
            &raw mut code,
            &raw mut errors,
        )
    };
    check("D3DCompile", result)?;
    blob("D3DCompile", code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If set, the test writes the bytecode instead of comparing it.
    const UPDATE: &str = "UPDATE_KERNELS";

    functions! {
        /// The function that only Wine's `ntdll.dll` has.
        Wine {
            version = "wine_get_version" fn() -> *const std::ffi::c_char;
        }
    }

    /// Whether this is the version of Wine whose compiler made the bytecode.
    fn is_wine_10() -> bool {
        let ntdll = Loaded::open(Api::D3d11, &["ntdll.dll"]).unwrap();
        Wine::load(&ntdll).is_ok_and(|wine| {
            // SAFETY: the function returns a constant text that ends with a NUL.
            let version = unsafe { std::ffi::CStr::from_ptr((wine.version)()) };
            version.to_bytes().starts_with(b"10.")
        })
    }

    #[test]
    fn the_bytecode_is_that_of_its_source() {
        if !is_wine_10() {
            // Other compilers write other bytes, and some hosts have none.
            let made = compile().unwrap_or_else(|_| BYTECODE.to_vec());
            assert!(made.starts_with(b"DXBC"));
            return;
        }
        let made = compile().unwrap();
        if std::env::var_os(UPDATE).is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/mix.dxbc");
            std::fs::write(file, &made).unwrap();
            return;
        }
        assert!(made == BYTECODE, "run this test with {UPDATE}=1");
    }

    #[test]
    fn the_bytecode_is_a_container_of_its_whole_length() {
        let length = u32::from_le_bytes(BYTECODE[24..28].try_into().unwrap());
        assert!(BYTECODE.starts_with(b"DXBC"));
        assert_eq!(usize::try_from(length), Ok(BYTECODE.len()));
    }

    #[test]
    fn bytecode_that_is_refused_is_compiled_from_the_source() {
        // Hosts without the compiler keep the first error.
        let has_compiler = compile().is_ok();
        // The compiler of Wine writes the same bytes at another address.
        let found = with_bytecode(|bytecode| {
            if bytecode.as_ptr() == BYTECODE.as_ptr() { Err(Fault::new("refused")) } else { Ok(()) }
        });
        assert_eq!(found.is_ok(), has_compiler);
        let always = with_bytecode(|_| Err::<(), _>(Fault::new("refused")));
        assert_eq!(always, Err(Fault::new("refused")));
    }
}
