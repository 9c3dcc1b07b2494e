//! Explains the absence of a library, given what else was found.

use crate::api::Api;
use crate::outcome::{Fault, Outcome};

/// The part of the troubleshooting page about the driver's files.
const RUNTIME_FILES: &str = concat!("see ", page!("runtime-files"));

/// The fault of an API whose library is not installed: `names` are the files that were tried.
pub(crate) fn absent(api: Api, names: &[&str]) -> Fault {
    let fault = Fault::new(format!("{} not found", names.join(" and ")));
    match api {
        Api::Directml => fault.hint(
            "the base image has no DirectML: use mcr.microsoft.com/windows/server, or put \
             DirectML.dll into the image",
        ),
        _ if api.is_directx() => fault.hint(
            "the base image has no Direct3D: use mcr.microsoft.com/windows/server or \
             mcr.microsoft.com/windows",
        ),
        Api::Cuda | Api::Nvml | Api::Nvenc => fault.hint(vendor("NVIDIA")),
        Api::Amf => fault.hint(vendor("AMD")),
        Api::Qsv => fault.hint(vendor("Intel")),
        _ => fault.hint(format!(
            "neither the image nor the driver's mounted files contain the loader: {RUNTIME_FILES}"
        )),
    }
}

/// The hint if a library of a vendor's driver is missing.
fn vendor(name: &str) -> String {
    format!("if the GPU is {name}'s, its driver's files are not mounted: {RUNTIME_FILES}")
}

/// The fault of a library that exists and does not load.
pub(crate) fn unusable(error: &str) -> Fault {
    Fault::new(format!("the library cannot be loaded: {error}")).hint(format!(
        "the file is damaged, for another system, or lacks a library that it needs: {RUNTIME_FILES}"
    ))
}

/// Whether the system's error says that there is no file `name`. A library that lacks another one
/// fails with the other one's name on Linux.
pub(crate) fn is_missing(name: &str, error: &str) -> bool {
    // 126 is `ERROR_MOD_NOT_FOUND`, whose text depends on the language.
    error.contains("os error 126")
        || error.contains("No such file") && error.contains(&format!("{name}: "))
}

/// Improves the hint with the other outcomes, because NVIDIA's libraries are installed together.
pub(crate) fn refine(api: Api, fault: Fault, all: &[(Api, &Outcome)]) -> Fault {
    let other = match api {
        Api::Cuda => Api::Nvml,
        Api::Nvml | Api::Nvenc => Api::Cuda,
        _ => return fault,
    };
    let has_other = all.iter().any(|(a, outcome)| {
        *a == other
            && matches!(outcome, Outcome::Listed { .. } | Outcome::Broken { library: Some(_), .. })
    });
    // Without a hint, the library exists, and its devices lack what it needs.
    if !has_other || fault.hint.is_none() {
        return fault;
    }
    let hint = format!(
        "the library of {} exists, so the driver's files are mounted only in part: {RUNTIME_FILES}",
        other.name()
    );
    fault.hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Library;

    #[test]
    fn nvidias_libraries_are_expected_together() {
        let library = Library::new("nvcuda.dll");
        let listed = Outcome::Listed { library, devices: Vec::new() };
        let absent_nvml = absent(Api::Nvml, &["nvml.dll"]);
        let unchanged = refine(Api::Nvml, absent_nvml.clone(), &[]);
        assert_eq!(unchanged, absent_nvml);
        let hint = refine(Api::Nvml, absent_nvml, &[(Api::Cuda, &listed)]).hint.unwrap();
        assert!(hint.starts_with("the library of cuda exists, so"), "{hint}");
    }

    #[test]
    fn a_library_that_exists_but_does_not_load_is_not_absent() {
        let missing = |error| is_missing("libx.so.1", error);
        assert!(missing("libx.so.1: cannot open shared object file: No such file or directory"));
        assert!(missing("LoadLibraryExW failed: Module not found. (os error 126)"));
        for error in ["libx.so.1: wrong ELF class", "libother.so: No such file or directory"] {
            assert!(!missing(error), "{error}");
        }
    }

    #[test]
    fn images_without_direct3d_are_named() {
        let hint = absent(Api::D3d12, &["d3d12.dll"]).hint.unwrap();
        assert!(hint.starts_with("the base image has no Direct3D"), "{hint}");
    }
}
