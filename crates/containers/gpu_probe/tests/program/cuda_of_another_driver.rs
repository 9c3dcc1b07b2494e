//! A `libcuda.so.1` of another driver version than the node's. `cuInit` says so, and no other
//! function is called. `broken_driver.rs` compiles it as a library.
#![allow(non_snake_case, reason = "the names are those of `cuda.h`")]

use std::ffi::c_char;

const SYSTEM_DRIVER_MISMATCH: i32 = 803;

#[unsafe(no_mangle)]
pub extern "system" fn cuInit(_: u32) -> i32 {
    SYSTEM_DRIVER_MISMATCH
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGetErrorName(error: i32, name: *mut *const c_char) -> i32 {
    assert_eq!(error, SYSTEM_DRIVER_MISMATCH);
    unsafe { *name = c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH".as_ptr() };
    0
}

macro_rules! not_called {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "system" fn $name() -> i32 {
                unreachable!()
            }
        )*
    };
}

not_called! {
    cuDriverGetVersion
    cuDeviceGetCount
    cuDeviceGet
    cuDeviceGetName
    cuDeviceTotalMem_v2
    cuCtxCreate_v2
    cuCtxSynchronize
    cuModuleLoadData
    cuModuleGetFunction
    cuMemAlloc_v2
    cuMemsetD32_v2
    cuMemcpyDtoH_v2
    cuLaunchKernel
}
