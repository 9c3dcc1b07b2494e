//! NVENC: encodes ten frames on every device of CUDA.
#![allow(unsafe_code, reason = "calls NVIDIA's encoder")]

use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::Instant;

use super::super::cuda;
use super::structure::Structure;
use crate::library::{Loaded, Symbols, functions};
use crate::outcome::{Fault, Measurement};
use crate::session::{Candidate, Devices, Refusal, Work};

mod layout;

use self::layout::{
    BITSTREAM, BITSTREAM_BUFFER, CAPABILITY, CAPABILITY_QUERY, CODECS, ENCODER, ENCODER_CODEC,
    ENCODER_DECIDES_TYPES, ENCODER_HEIGHT, ENCODER_PRESET, ENCODER_RATE, ENCODER_RATE_BASE,
    ENCODER_TUNING, ENCODER_WIDTH, FUNCTION_LIST, Guid, H264, INPUT, INPUT_BUFFER, INPUT_FORMAT,
    INPUT_HEIGHT, INPUT_WIDTH, LISTED, LOCKED_BITSTREAM, LOCKED_BITSTREAM_BUFFER,
    LOCKED_BITSTREAM_SIZE, LOCKED_BITSTREAM_START, LOCKED_INPUT, LOCKED_INPUT_BUFFER,
    LOCKED_INPUT_PITCH, LOCKED_INPUT_START, PICTURE, PICTURE_FORMAT, PICTURE_HEIGHT, PICTURE_INDEX,
    PICTURE_INPUT, PICTURE_OUTPUT, PICTURE_PITCH, PICTURE_STRUCTURE, PICTURE_TIME, PICTURE_WIDTH,
    PRESET_P1, REPORTED_VERSION, SESSION, SESSION_API_VERSION, SESSION_DEVICE, SESSION_DEVICE_TYPE,
    VERSION,
};

pub(crate) const NAMES: &[&str] =
    if cfg!(windows) { &["nvEncodeAPI64.dll"] } else { &["libnvidia-encode.so.1"] };

// Status codes and constants of `nvEncodeAPI.h`.
const NO_ENCODE_DEVICE: i32 = 1;
const UNSUPPORTED_DEVICE: i32 = 2;
const CUDA_DEVICE: u32 = 1;
const NV12: u32 = 1;
const FRAME: u32 = 1;
const LOW_LATENCY: u32 = 2;
const WIDTH_MAX: u32 = 16;

/// A `GUID` as an argument, aligned as in the header.
#[repr(C, align(4))]
#[derive(Clone, Copy)]
struct GuidArgument([u32; 4]);

const WIDTH: u32 = 640;
const HEIGHT: u32 = 360;
const FRAMES: u32 = 10;

/// A session, a buffer or the address of a structure.
type Handle = *mut c_void;

functions! {
    /// The functions that the library exports.
    Exported {
        version = "NvEncodeAPIGetMaxSupportedVersion" fn(*mut u32) -> i32;
        create = "NvEncodeAPICreateInstance" fn(*mut u64) -> i32;
    }
}

functions! {
    /// The functions of the list.
    Functions {
        open = "nvEncOpenEncodeSessionEx" fn(*mut u64, *mut Handle) -> i32;
        count = "nvEncGetEncodeGUIDCount" fn(Handle, *mut u32) -> i32;
        codecs = "nvEncGetEncodeGUIDs" fn(Handle, *mut Guid, u32, *mut u32) -> i32;
        capability = "nvEncGetEncodeCaps" fn(Handle, GuidArgument, *mut u64, *mut i32) -> i32;
        initialize = "nvEncInitializeEncoder" fn(Handle, *mut u64) -> i32;
        input = "nvEncCreateInputBuffer" fn(Handle, *mut u64) -> i32;
        bitstream = "nvEncCreateBitstreamBuffer" fn(Handle, *mut u64) -> i32;
        encode = "nvEncEncodePicture" fn(Handle, *mut u64) -> i32;
        lock_input = "nvEncLockInputBuffer" fn(Handle, *mut u64) -> i32;
        unlock_input = "nvEncUnlockInputBuffer" fn(Handle, Handle) -> i32;
        lock = "nvEncLockBitstream" fn(Handle, *mut u64) -> i32;
        unlock = "nvEncUnlockBitstream" fn(Handle, Handle) -> i32;
    }
}

/// The list of functions.
impl Symbols for Structure {
    fn function(&self, symbol: &'static str) -> Result<*mut (), Fault> {
        let field = LISTED.iter().find(|(name, _)| *name == symbol).map(|(_, field)| *field);
        let address = field.map_or(0, |field| self.u64(field));
        if address == 0 {
            return Err(Fault::new(format!("the driver has no function `{symbol}`")));
        }
        Ok(std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or_default()))
    }
}

/// Opens a session on every device of CUDA. Devices without an encoder, such as
/// some for data centers, are left out.
pub(crate) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let (functions, version) = functions(&library)?;
    let mut candidates = Vec::new();
    for (info, context) in cuda::contexts()? {
        let work = match context.and_then(|context| Encoder::open(functions, context)) {
            Ok(None) => continue,
            Ok(Some(encoder)) => Work::Test(Box::new(move || encoder.test())),
            Err(fault) => Work::Known(Err(fault)),
        };
        candidates.push(Candidate { info, work });
    }
    if candidates.is_empty() {
        return Err(Refusal::Absent(Fault::new("no device of CUDA has an encoder")));
    }
    Ok((Some(version), candidates))
}

fn functions(library: &Loaded) -> Result<(Functions, String), Fault> {
    let exported = Exported::load(library)?;
    let mut version = 0;
    // SAFETY: writes one number.
    check("NvEncodeAPIGetMaxSupportedVersion", unsafe { (exported.version)(&raw mut version) })?;
    let name = format!("NVENC {}.{}", version >> 4, version & 0xf);
    if version < REPORTED_VERSION {
        return Err(Fault::new(format!("the driver has {name}, older than 11.1"))
            .hint("install NVIDIA's driver 470 or newer on the node"));
    }
    let mut list = new(FUNCTION_LIST);
    // SAFETY: the structure has the size of its version.
    check("NvEncodeAPICreateInstance", unsafe { (exported.create)(list.start()) })?;
    Ok((Functions::load(&list)?, name))
}

/// An empty structure with its version.
fn new((size, version): (usize, u32)) -> Structure {
    Structure::new(size).with_u32(0, version)
}

fn check(call: &str, status: i32) -> Result<(), Fault> {
    // The values are those of `NVENCSTATUS`.
    let (name, hint) = match status {
        0 => return Ok(()),
        8 => (" (NV_ENC_ERR_INVALID_PARAM)", ""),
        10 => (
            " (NV_ENC_ERR_OUT_OF_MEMORY)",
            "other processes encode on this device: consumer GPUs limit the number of sessions",
        ),
        15 => (
            " (NV_ENC_ERR_INVALID_VERSION)",
            "the container has files of another driver version: remove them from the image",
        ),
        _ => ("", ""),
    };
    let fault = Fault::new(format!("{call} failed with {status}{name}"));
    Err(if hint.is_empty() { fault } else { fault.hint(hint) })
}

/// A session on a device.
struct Encoder {
    functions: Functions,
    session: Handle,
}

// Sessions and buffers come from earlier calls and are never destroyed; structures have the sizes
// of their versions.
impl Encoder {
    /// `None`: the device has no encoder.
    fn open(functions: Functions, context: Handle) -> Result<Option<Encoder>, Fault> {
        let mut parameters = new(SESSION)
            .with_u32(SESSION_DEVICE_TYPE, CUDA_DEVICE)
            .with_u64(SESSION_DEVICE, address(context))
            .with_u32(SESSION_API_VERSION, VERSION);
        let mut session = null_mut();
        // SAFETY: the context is a live one of CUDA.
        let status = unsafe { (functions.open)(parameters.start(), &raw mut session) };
        if matches!(status, NO_ENCODE_DEVICE | UNSUPPORTED_DEVICE) {
            return Ok(None);
        }
        check("nvEncOpenEncodeSessionEx", status)?;
        Ok(Some(Encoder { functions, session }))
    }

    fn test(&self) -> Result<Vec<Measurement>, Fault> {
        let mut values = self.codecs()?;
        let start = Instant::now();
        self.initialize()?;
        let [input, output] = self.buffers()?;
        let first = self.encode(0, input, output)?;
        if first.get(4).is_none_or(|header| header & 0x1f != 7) {
            return Err(Fault::new("wrong result: the first frame has no parameters of H.264"));
        }
        values.push(Measurement::new("first frame", start.elapsed().as_secs_f64() * 1e3, "ms"));
        let start = Instant::now();
        for index in 1..FRAMES {
            self.encode(index, input, output)?;
        }
        let rate = f64::from(FRAMES - 1) / start.elapsed().as_secs_f64().max(1e-9);
        values.push(Measurement::new("H.264 at 640x360", rate, "frames/s"));
        Ok(values)
    }

    /// The largest width of each codec.
    fn codecs(&self) -> Result<Vec<Measurement>, Fault> {
        let mut count = 0;
        // SAFETY: writes one number.
        let status = unsafe { (self.functions.count)(self.session, &raw mut count) };
        check("nvEncGetEncodeGUIDCount", status)?;
        let mut found = vec![Guid::default(); count.min(64) as usize];
        // SAFETY: the list has the length that is passed.
        let status = unsafe {
            let (list, length) = (found.as_mut_ptr(), count.min(64));
            (self.functions.codecs)(self.session, list, length, &raw mut count)
        };
        check("nvEncGetEncodeGUIDs", status)?;
        let mut values = Vec::new();
        for (name, codec) in CODECS.iter().filter(|(_, codec)| found.contains(codec)) {
            let mut query = new(CAPABILITY).with_u32(CAPABILITY_QUERY, WIDTH_MAX);
            let mut width = 0;
            let words = codec.as_chunks().0.iter().map(|part| u32::from_le_bytes(*part));
            let mut argument = GuidArgument([0; 4]);
            argument.0.iter_mut().zip(words).for_each(|(word, value)| *word = value);
            // SAFETY: as above.
            let status = unsafe {
                let (query, width) = (query.start(), &raw mut width);
                (self.functions.capability)(self.session, argument, query, width)
            };
            check("nvEncGetEncodeCaps", status)?;
            values.push(Measurement::new(name, f64::from(width), "px"));
        }
        Ok(values)
    }

    /// Without delay, each frame gives its part of the bitstream at once.
    fn initialize(&self) -> Result<(), Fault> {
        let mut parameters = new(ENCODER)
            .with_bytes(ENCODER_CODEC, H264)
            .with_bytes(ENCODER_PRESET, PRESET_P1)
            .with_u32(ENCODER_WIDTH, WIDTH)
            .with_u32(ENCODER_HEIGHT, HEIGHT)
            .with_u32(ENCODER_RATE, 30)
            .with_u32(ENCODER_RATE_BASE, 1)
            .with_u32(ENCODER_DECIDES_TYPES, 1)
            .with_u32(ENCODER_TUNING, LOW_LATENCY);
        // SAFETY: as above.
        let status = unsafe { (self.functions.initialize)(self.session, parameters.start()) };
        check("nvEncInitializeEncoder", status)
    }

    /// The buffers of frames and of the bitstream.
    fn buffers(&self) -> Result<[u64; 2], Fault> {
        let mut input = new(INPUT)
            .with_u32(INPUT_WIDTH, WIDTH)
            .with_u32(INPUT_HEIGHT, HEIGHT)
            .with_u32(INPUT_FORMAT, NV12);
        // SAFETY: as above.
        let status = unsafe { (self.functions.input)(self.session, input.start()) };
        check("nvEncCreateInputBuffer", status)?;
        let mut bitstream = new(BITSTREAM);
        // SAFETY: as above.
        let status = unsafe { (self.functions.bitstream)(self.session, bitstream.start()) };
        check("nvEncCreateBitstreamBuffer", status)?;
        Ok([input.u64(INPUT_BUFFER), bitstream.u64(BITSTREAM_BUFFER)])
    }

    /// Encodes a frame, and returns its part of the bitstream.
    fn encode(&self, index: u32, input: u64, output: u64) -> Result<Vec<u8>, Fault> {
        let pitch = self.draw(index, input)?;
        let mut picture = new(PICTURE)
            .with_u32(PICTURE_WIDTH, WIDTH)
            .with_u32(PICTURE_HEIGHT, HEIGHT)
            .with_u32(PICTURE_PITCH, pitch)
            .with_u32(PICTURE_INDEX, index)
            .with_u64(PICTURE_TIME, index.into())
            .with_u64(PICTURE_INPUT, input)
            .with_u64(PICTURE_OUTPUT, output)
            .with_u32(PICTURE_FORMAT, NV12)
            .with_u32(PICTURE_STRUCTURE, FRAME);
        // SAFETY: as above.
        let status = unsafe { (self.functions.encode)(self.session, picture.start()) };
        check("nvEncEncodePicture", status)?;
        let mut locked = new(LOCKED_BITSTREAM).with_u64(LOCKED_BITSTREAM_BUFFER, output);
        // SAFETY: as above. The call waits for the encoder.
        let status = unsafe { (self.functions.lock)(self.session, locked.start()) };
        check("nvEncLockBitstream", status)?;
        let size = locked.u32(LOCKED_BITSTREAM_SIZE) as usize;
        let start = pointer(locked.u64(LOCKED_BITSTREAM_START));
        let bytes = if start.is_null() {
            Vec::new()
        } else {
            // SAFETY: the encoder wrote this many bytes.
            unsafe { std::slice::from_raw_parts(start, size) }.to_vec()
        };
        // SAFETY: the bitstream is locked.
        let status = unsafe { (self.functions.unlock)(self.session, pointer(output).cast()) };
        check("nvEncUnlockBitstream", status)?;
        if bytes.starts_with(&[0, 0, 0, 1]) {
            return Ok(bytes);
        }
        Err(Fault::new(format!("wrong result: frame {index} is no H.264: {size} bytes")))
    }

    /// Writes a gradient that moves, and returns the bytes of a row.
    fn draw(&self, index: u32, input: u64) -> Result<u32, Fault> {
        let mut locked = new(LOCKED_INPUT).with_u64(LOCKED_INPUT_BUFFER, input);
        // SAFETY: as above.
        let status = unsafe { (self.functions.lock_input)(self.session, locked.start()) };
        check("nvEncLockInputBuffer", status)?;
        let (start, pitch) = (locked.u64(LOCKED_INPUT_START), locked.u32(LOCKED_INPUT_PITCH));
        if start == 0 || pitch < WIDTH {
            return Err(Fault::new("nvEncLockInputBuffer returned no buffer"));
        }
        // NV12 has one row of brightness for each line, and one row of color for two lines.
        let size = (pitch * HEIGHT * 3 / 2) as usize;
        // SAFETY: NV12 has this size, and nothing else uses the locked buffer.
        let bytes = unsafe { std::slice::from_raw_parts_mut(pointer(start), size) };
        for (place, byte) in (index..).zip(bytes) {
            *byte = place.to_le_bytes()[0];
        }
        // SAFETY: the buffer is locked.
        let status = unsafe { (self.functions.unlock_input)(self.session, pointer(input).cast()) };
        check("nvEncUnlockInputBuffer", status)?;
        Ok(pitch)
    }
}

fn address(handle: Handle) -> u64 {
    handle.expose_provenance() as u64
}

fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or_default())
}
