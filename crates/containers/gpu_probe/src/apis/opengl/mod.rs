//! OpenGL: a compute shader, in contexts without a visible window.
#![allow(unsafe_code, reason = "calls OpenGL")]

use std::ffi::{CStr, c_char, c_void};

#[cfg(not(windows))]
mod egl;
#[cfg(windows)]
mod wgl;

#[cfg(not(windows))]
use self::egl as platform;
#[cfg(windows)]
use self::wgl as platform;

use self::platform::Context;
pub(super) use self::platform::NAMES;
use crate::library::{Loaded, functions, until_nul};
use crate::outcome::{DeviceInfo, Fault, Kind};
use crate::session::{Candidate, Devices, Refusal, Work};
use crate::workload::{BYTES, GROUPS, WORDS};

/// The shader of Vulkan. Only its first lines differ.
const SOURCE: &str = include_str!("../../../kernels/mix.comp");

// The values of `GL/gl.h` and `GL/glcorearb.h`.
const RENDERER: u32 = 0x1f01;
const VERSION: u32 = 0x1f02;
const OUT_OF_MEMORY: u32 = 0x505;
const CONTEXT_LOST: u32 = 0x507;
const DYNAMIC_READ: u32 = 0x88e9;
const COMPILE_STATUS: u32 = 0x8b81;
const LINK_STATUS: u32 = 0x8b82;
const SHADER_STORAGE_BUFFER: u32 = 0x90d2;
const COMPUTE_SHADER: u32 = 0x91b9;
const BUFFER_UPDATE_BARRIER: u32 = 0x200;

/// The renderers that compute on the CPU. Microsoft's own has the version 1.1 and no shaders.
const SOFTWARE: [&str; 6] =
    ["llvmpipe", "softpipe", "swrast", "SwiftShader", "Basic Render", MICROSOFT_RENDERER];
const MICROSOFT_RENDERER: &str = "GDI Generic";

functions! {
    /// The function that every version has.
    Strings {
        string = "glGetString" fn(u32) -> *const c_char;
    }
}

functions! {
    /// The functions of OpenGL 4.3 that the test needs.
    Functions {
        error = "glGetError" fn() -> u32;
        shader = "glCreateShader" fn(u32) -> u32;
        source = "glShaderSource" fn(u32, i32, *const *const c_char, *const i32) -> ();
        compile = "glCompileShader" fn(u32) -> ();
        shader_value = "glGetShaderiv" fn(u32, u32, *mut i32) -> ();
        shader_log = "glGetShaderInfoLog" fn(u32, i32, *mut i32, *mut c_char) -> ();
        program = "glCreateProgram" fn() -> u32;
        attach = "glAttachShader" fn(u32, u32) -> ();
        link = "glLinkProgram" fn(u32) -> ();
        program_value = "glGetProgramiv" fn(u32, u32, *mut i32) -> ();
        use_program = "glUseProgram" fn(u32) -> ();
        buffers = "glGenBuffers" fn(i32, *mut u32) -> ();
        bind = "glBindBufferBase" fn(u32, u32, u32) -> ();
        allocate = "glBufferData" fn(u32, isize, *const c_void, u32) -> ();
        read = "glGetBufferSubData" fn(u32, isize, isize, *mut c_void) -> ();
        dispatch = "glDispatchCompute" fn(u32, u32, u32) -> ();
        barrier = "glMemoryBarrier" fn(u32) -> ();
    }
}

/// The version of a platform, and the contexts that it could create.
type Contexts = (Option<String>, Vec<Result<Context, Fault>>);

/// Lists the devices of every context, with a kernel in each.
pub(super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let (version, contexts) = platform::contexts(library)?;
    let mut candidates = Vec::new();
    for context in contexts {
        let candidate = context.and_then(candidate);
        candidates.push(candidate.unwrap_or_else(|fault| Candidate {
            info: DeviceInfo { name: "device".to_owned(), ..DeviceInfo::default() },
            work: Work::Known(Err(fault)),
        }));
    }
    if candidates.iter().any(|candidate| candidate.info.name == MICROSOFT_RENDERER) {
        return Err(Refusal::Absent(no_driver()));
    }
    Ok((version, candidates))
}

/// Without a driver, `opengl32.dll` computes by itself.
fn no_driver() -> Fault {
    Fault::new("opengl32.dll finds no OpenGL driver").hint(concat!(
        "the driver's files are not mounted, or not registered in the container; see ",
        page!("runtime-files")
    ))
}

fn candidate(context: Context) -> Result<Candidate, Fault> {
    context.make_current()?;
    let strings = Strings::load(&context)?;
    let name =
        strings.text(RENDERER).ok_or_else(|| Fault::new("glGetString returned no renderer"))?;
    let version = strings.text(VERSION).unwrap_or_default();
    let work = if has_compute_shaders(&version) {
        Work::kernel(move || compute(&context))
    } else {
        let fault = format!("OpenGL {version} has no compute shaders, which came with OpenGL 4.3");
        Work::Known(Err(Fault::new(fault)))
    };
    let info = DeviceInfo {
        kind: if is_software(&name) { Kind::Software } else { Kind::Hardware },
        name,
        driver: Some(format!("OpenGL {version}")),
        ..DeviceInfo::default()
    };
    Ok(Candidate { info, work })
}

impl Strings {
    /// A text about the current context.
    fn text(self, name: u32) -> Option<String> {
        // SAFETY: a context is current. The text ends with a NUL and lives as long as it.
        let text = unsafe { (self.string)(name) };
        // SAFETY: as above.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}

fn is_software(renderer: &str) -> bool {
    SOFTWARE.iter().any(|name| renderer.contains(name))
}

/// The version is text that begins with two numbers.
fn has_compute_shaders(version: &str) -> bool {
    let mut numbers = version.split(['.', ' ']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(4), Some(3))
}

/// The shader of Vulkan for OpenGL, which has no descriptor sets.
fn source() -> String {
    SOURCE.replace("#version 450", "#version 430").replace("set = 0, ", "")
}

/// Runs the shader in a context, and returns the words that it wrote.
fn compute(context: &Context) -> Result<Vec<u32>, Fault> {
    context.make_current()?;
    let functions = Functions::load(context)?;
    let program = program(functions)?;
    let mut words = vec![0_u32; WORDS];
    let mut buffer = 0;
    // SAFETY: the context is current. The buffer has the size of the words, which are zeros and
    // overwrite its content before the shader runs.
    unsafe {
        (functions.use_program)(program);
        (functions.buffers)(1, &raw mut buffer);
        (functions.bind)(SHADER_STORAGE_BUFFER, 0, buffer);
        (functions.allocate)(SHADER_STORAGE_BUFFER, SIZE, words.as_ptr().cast(), DYNAMIC_READ);
    }
    functions.check("glBufferData")?;
    // SAFETY: program and buffer are bound, and there is room for the words.
    unsafe {
        (functions.dispatch)(GROUPS, 1, 1);
        (functions.barrier)(BUFFER_UPDATE_BARRIER);
        // Reading the buffer waits for the commands.
        (functions.read)(SHADER_STORAGE_BUFFER, 0, SIZE, words.as_mut_ptr().cast());
    }
    functions.check("glDispatchCompute")?;
    Ok(words)
}

/// [`BYTES`] for OpenGL.
const SIZE: isize = BYTES.cast_signed();

impl Functions {
    fn check(self, call: &str) -> Result<(), Fault> {
        // SAFETY: a context is current.
        let error = unsafe { (self.error)() };
        if error == 0 {
            return Ok(());
        }
        let name = match error {
            OUT_OF_MEMORY => " (GL_OUT_OF_MEMORY)",
            CONTEXT_LOST => " (GL_CONTEXT_LOST)",
            _ => "",
        };
        Err(Fault::new(format!("{call} failed with {error:#06x}{name}")))
    }
}

fn program(functions: Functions) -> Result<u32, Fault> {
    let text = source();
    let start = text.as_ptr().cast::<c_char>();
    let length = i32::try_from(text.len()).map_err(|error| Fault::new(error.to_string()))?;
    let mut status = 0;
    // SAFETY: one text with its length.
    let shader = unsafe {
        let shader = (functions.shader)(COMPUTE_SHADER);
        (functions.source)(shader, 1, &raw const start, &raw const length);
        (functions.compile)(shader);
        (functions.shader_value)(shader, COMPILE_STATUS, &raw mut status);
        shader
    };
    if status == 0 {
        let mut log = [0_u8; 512];
        // SAFETY: the buffer has this size, and OpenGL ends the text with a NUL.
        unsafe {
            (functions.shader_log)(shader, 512, std::ptr::null_mut(), log.as_mut_ptr().cast());
        }
        return Err(Fault::new(format!("glCompileShader failed: {}", until_nul(&log).trim())));
    }
    // SAFETY: the shader was compiled.
    let program = unsafe {
        let program = (functions.program)();
        (functions.attach)(program, shader);
        (functions.link)(program);
        (functions.program_value)(program, LINK_STATUS, &raw mut status);
        program
    };
    if status == 0 { Err(Fault::new("glLinkProgram failed")) } else { Ok(program) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_versions_have_compute_shaders() {
        let new = ["4.3", "4.6.0 NVIDIA 553.62", "4.5 (Core Profile) Mesa 22.3.6", "5.0"];
        assert!(new.iter().all(|version| has_compute_shaders(version)));
        let old = ["", "1.1.0", "4.2.0", "3.9", "OpenGL ES 3.2"];
        assert!(!old.iter().any(|version| has_compute_shaders(version)));
    }

    #[test]
    fn software_renderers_are_recognized() {
        let software = ["llvmpipe (LLVM 15.0.6, 256 bits)", "GDI Generic"];
        assert!(software.iter().all(|name| is_software(name)));
        assert!(!is_software("NVIDIA A10/PCIe/SSE2") && !is_software("D3D12 (NVIDIA A10)"));
    }

    #[test]
    fn the_source_is_that_of_opengl() {
        let source = source();
        assert!(source.starts_with("#version 430\n") && !source.contains("set ="), "{source}");
    }
}
