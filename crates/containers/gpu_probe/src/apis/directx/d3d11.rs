//! Direct3D 11: a compute shader on every adapter of DXGI.
#![allow(unsafe_code, reason = "calls d3d11.dll")]

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use windows::Win32::Graphics::Direct3D::{D3D_DRIVER_TYPE, D3D_DRIVER_TYPE_UNKNOWN};
use windows::Win32::Graphics::Direct3D11::{
    D3D11_BIND_UNORDERED_ACCESS, D3D11_BUFFER_DESC, D3D11_BUFFER_UAV, D3D11_BUFFER_UAV_FLAG_RAW,
    D3D11_CPU_ACCESS_READ, D3D11_MAP_READ, D3D11_MAPPED_SUBRESOURCE,
    D3D11_RESOURCE_MISC_BUFFER_ALLOW_RAW_VIEWS, D3D11_SDK_VERSION, D3D11_UAV_DIMENSION_BUFFER,
    D3D11_UNORDERED_ACCESS_VIEW_DESC, D3D11_UNORDERED_ACCESS_VIEW_DESC_0, D3D11_USAGE_DEFAULT,
    D3D11_USAGE_STAGING, ID3D11Buffer, ID3D11ComputeShader, ID3D11Device, ID3D11DeviceContext,
    ID3D11UnorderedAccessView,
};
use windows::Win32::Graphics::Dxgi::Common::DXGI_FORMAT_R32_TYPELESS;
use windows::Win32::Graphics::Dxgi::IDXGIAdapter1;
use windows::core::{HRESULT, Interface};

use super::com::{Adapter, check, failed};
use super::{dxgi, shader};
use crate::api::Api;
use crate::library::{Loaded, functions};
use crate::outcome::Fault;
use crate::session::{Candidate, Devices, Refusal, Work};
use crate::workload::{GROUP, GROUPS, WORDS};

pub(crate) const NAMES: &[&str] = &["d3d11.dll"];

functions! {
    /// The function of `d3d11.h`.
    Functions {
        create_device = "D3D11CreateDevice" fn(*mut c_void, D3D_DRIVER_TYPE, *mut c_void, u32,
            *const i32, u32, u32, *mut *mut c_void, *mut i32, *mut *mut c_void) -> HRESULT;
    }
}

/// Lists the adapters, with a kernel on each.
pub(in super::super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    Functions::load(&library)?;
    let adapters = dxgi::adapters(Loaded::open(Api::Dxgi, dxgi::NAMES)?)?;
    let candidates = adapters.into_iter().map(|Adapter { info, object }| Candidate {
        info,
        work: Work::kernel(move || Computation::open(&library, &object)?.run()),
    });
    Ok((None, candidates.collect()))
}

/// The shader on a device.
struct Computation {
    context: ID3D11DeviceContext,
    shader: ID3D11ComputeShader,
    view: ID3D11UnorderedAccessView,
    result: ID3D11Buffer,
    staging: ID3D11Buffer,
}

impl Computation {
    fn open(library: &Loaded, adapter: &IDXGIAdapter1) -> Result<Computation, Fault> {
        let (device, context) = create_device(library, D3D_DRIVER_TYPE_UNKNOWN, adapter.as_raw())?;
        let shader = shader::with_bytecode(|bytecode| {
            let mut shader = None;
            // SAFETY: the bytecode is a slice, and the shader is written on success.
            let created =
                unsafe { device.CreateComputeShader(bytecode, None, Some(&raw mut shader)) };
            created.map_err(failed("CreateComputeShader"))?;
            shader.ok_or_else(|| Fault::new("CreateComputeShader returned no shader"))
        })?;
        let size = GROUP * GROUPS * 4;
        let result = buffer(
            &device,
            &D3D11_BUFFER_DESC {
                ByteWidth: size,
                Usage: D3D11_USAGE_DEFAULT,
                BindFlags: D3D11_BIND_UNORDERED_ACCESS.0.cast_unsigned(),
                MiscFlags: D3D11_RESOURCE_MISC_BUFFER_ALLOW_RAW_VIEWS.0.cast_unsigned(),
                ..D3D11_BUFFER_DESC::default()
            },
        )?;
        let staging = buffer(
            &device,
            &D3D11_BUFFER_DESC {
                ByteWidth: size,
                Usage: D3D11_USAGE_STAGING,
                CPUAccessFlags: D3D11_CPU_ACCESS_READ.0.cast_unsigned(),
                ..D3D11_BUFFER_DESC::default()
            },
        )?;
        let view = view(&device, &result)?;
        Ok(Computation { context, shader, view, result, staging })
    }

    fn run(&self) -> Result<Vec<u32>, Fault> {
        let Computation { context, shader, view, result, staging } = self;
        let views = [Some(view.clone())];
        let mut mapped = D3D11_MAPPED_SUBRESOURCE::default();
        // SAFETY: all objects are live and of one device; the context orders the commands.
        unsafe {
            context.ClearUnorderedAccessViewUint(view, &[0; 4]);
            context.CSSetShader(shader, None);
            context.CSSetUnorderedAccessViews(0, 1, Some(views.as_ptr()), None);
            context.Dispatch(GROUPS, 1, 1);
            context.CopyResource(staging, result);
            // Mapping the buffer waits for the commands.
            let mapping = context.Map(staging, 0, D3D11_MAP_READ, 0, Some(&raw mut mapped));
            mapping.map_err(failed("Map"))?;
        }
        // SAFETY: the mapping has the size of the buffer and ends below.
        let words =
            unsafe { std::slice::from_raw_parts(mapped.pData.cast::<u32>(), WORDS) }.to_vec();
        // SAFETY: the buffer is mapped.
        unsafe { context.Unmap(staging, 0) };
        Ok(words)
    }
}

/// A device and its context. `adapter` is null or a live adapter of DXGI.
pub(crate) fn create_device(
    library: &Loaded,
    kind: D3D_DRIVER_TYPE,
    adapter: *mut c_void,
) -> Result<(ID3D11Device, ID3D11DeviceContext), Fault> {
    let functions = Functions::load(library)?;
    let mut device = null_mut();
    let mut context = null_mut();
    // SAFETY: the caller passes no other pointer. Without a list, Windows chooses the highest level
    // up to 11.0.
    let result = unsafe {
        (functions.create_device)(
            adapter,
            kind,
            null_mut(),
            0,
            null(),
            0,
            D3D11_SDK_VERSION,
            &raw mut device,
            null_mut(),
            &raw mut context,
        )
    };
    check("D3D11CreateDevice", result)?;
    if device.is_null() || context.is_null() {
        return Err(Fault::new("D3D11CreateDevice returned no device"));
    }
    // SAFETY: the call succeeded, so this is the object, and this code owns the reference.
    let device = unsafe { ID3D11Device::from_raw(device) };
    // SAFETY: as above.
    let context = unsafe { ID3D11DeviceContext::from_raw(context) };
    Ok((device, context))
}

fn buffer(device: &ID3D11Device, description: &D3D11_BUFFER_DESC) -> Result<ID3D11Buffer, Fault> {
    let mut buffer = None;
    // SAFETY: the description lives during the call.
    let created = unsafe { device.CreateBuffer(description, None, Some(&raw mut buffer)) };
    created.map_err(failed("CreateBuffer"))?;
    buffer.ok_or_else(|| Fault::new("CreateBuffer returned no buffer"))
}

/// Compute-only devices have raw and structured buffers only.
fn view(device: &ID3D11Device, buffer: &ID3D11Buffer) -> Result<ID3D11UnorderedAccessView, Fault> {
    let description = D3D11_UNORDERED_ACCESS_VIEW_DESC {
        Format: DXGI_FORMAT_R32_TYPELESS,
        ViewDimension: D3D11_UAV_DIMENSION_BUFFER,
        Anonymous: D3D11_UNORDERED_ACCESS_VIEW_DESC_0 {
            Buffer: D3D11_BUFFER_UAV {
                FirstElement: 0,
                NumElements: GROUP * GROUPS,
                Flags: D3D11_BUFFER_UAV_FLAG_RAW.0.cast_unsigned(),
            },
        },
    };
    let mut view = None;
    // SAFETY: the description fits a buffer and lives during the call.
    let created = unsafe {
        device.CreateUnorderedAccessView(buffer, Some(&raw const description), Some(&raw mut view))
    };
    created.map_err(failed("CreateUnorderedAccessView"))?;
    view.ok_or_else(|| Fault::new("CreateUnorderedAccessView returned no view"))
}
