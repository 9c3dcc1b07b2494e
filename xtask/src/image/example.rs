//! Images that show how a container uses its devices.

/// An image with programs of this project on a Windows image.
pub(super) struct Example {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// Its files, by their names in the plugin's image.
    pub(super) files: &'static [&'static str],
    /// The program that the container runs.
    pub(super) program: &'static str,
}

pub(super) const EXAMPLES: &[Example] = &[
    Example {
        name: "device-discovery",
        description: "Lists the DirectX devices that a container sees",
        files: &[
            "directx-device-discovery.dll",
            "test-device-discovery.exe",
            "test-device-discovery-cpp.exe",
            "test-device-discovery-go.exe",
        ],
        program: "test-device-discovery.exe",
    },
    Example {
        name: "gpu-probe",
        description: "Uses every GPU API of a container for a moment and reports what works",
        files: &["gpu-probe.exe"],
        program: "gpu-probe.exe",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::programs;

    #[test]
    fn examples_contain_shipped_files_and_their_program() {
        for example in EXAMPLES {
            assert!(example.files.contains(&example.program), "{}", example.name);
            for file in example.files {
                assert!(programs::names().any(|name| name == *file), "{file}");
            }
        }
    }
}
