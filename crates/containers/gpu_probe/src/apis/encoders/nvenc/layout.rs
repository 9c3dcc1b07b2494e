//! The structures and constants of `nvEncodeAPI.h`.

use super::super::structure::Field;

/// The version of the interface, 11.1, as `NVENCAPI_VERSION` and as drivers report it. Drivers from
/// 470 on have it, and newer ones keep it.
pub(super) const VERSION: u32 = 0xb | 1 << 24;
pub(super) const REPORTED_VERSION: u32 = 11 << 4 | 1;

/// `NVENCAPI_STRUCT_VERSION`, and the flag of structures that may grow.
const fn structure_version(version: u32) -> u32 {
    VERSION | version << 16 | 0x7 << 28
}
const GROWS: u32 = 1 << 31;

// The sizes and offsets of `nvEncodeAPI.h` on 64-bit systems. A test compares them with it.
pub(super) const FUNCTION_LIST: (usize, u32) = (2552, structure_version(2));
pub(super) const SESSION: (usize, u32) = (1552, structure_version(1));
pub(super) const SESSION_DEVICE_TYPE: Field = 4;
pub(super) const SESSION_DEVICE: Field = 8;
pub(super) const SESSION_API_VERSION: Field = 24;
pub(super) const CAPABILITY: (usize, u32) = (256, structure_version(1));
pub(super) const CAPABILITY_QUERY: Field = 4;
pub(super) const ENCODER: (usize, u32) = (1808, structure_version(5) | GROWS);
pub(super) const ENCODER_CODEC: Field = 4;
pub(super) const ENCODER_PRESET: Field = 20;
pub(super) const ENCODER_WIDTH: Field = 36;
pub(super) const ENCODER_HEIGHT: Field = 40;
pub(super) const ENCODER_RATE: Field = 52;
pub(super) const ENCODER_RATE_BASE: Field = 56;
pub(super) const ENCODER_DECIDES_TYPES: Field = 64;
pub(super) const ENCODER_TUNING: Field = 136;
pub(super) const INPUT: (usize, u32) = (776, structure_version(1));
pub(super) const INPUT_WIDTH: Field = 4;
pub(super) const INPUT_HEIGHT: Field = 8;
pub(super) const INPUT_FORMAT: Field = 16;
pub(super) const INPUT_BUFFER: Field = 24;
pub(super) const BITSTREAM: (usize, u32) = (776, structure_version(1));
pub(super) const BITSTREAM_BUFFER: Field = 16;
pub(super) const LOCKED_INPUT: (usize, u32) = (1544, structure_version(1));
pub(super) const LOCKED_INPUT_BUFFER: Field = 8;
pub(super) const LOCKED_INPUT_START: Field = 16;
pub(super) const LOCKED_INPUT_PITCH: Field = 24;
pub(super) const LOCKED_BITSTREAM: (usize, u32) = (1544, structure_version(1));
pub(super) const LOCKED_BITSTREAM_BUFFER: Field = 8;
pub(super) const LOCKED_BITSTREAM_SIZE: Field = 36;
pub(super) const LOCKED_BITSTREAM_START: Field = 56;
pub(super) const PICTURE: (usize, u32) = (3344, structure_version(4) | GROWS);
pub(super) const PICTURE_WIDTH: Field = 4;
pub(super) const PICTURE_HEIGHT: Field = 8;
pub(super) const PICTURE_PITCH: Field = 12;
pub(super) const PICTURE_INDEX: Field = 20;
pub(super) const PICTURE_TIME: Field = 24;
pub(super) const PICTURE_INPUT: Field = 40;
pub(super) const PICTURE_OUTPUT: Field = 48;
pub(super) const PICTURE_FORMAT: Field = 64;
pub(super) const PICTURE_STRUCTURE: Field = 68;

/// The functions of the list that the driver fills, with their offsets.
pub(super) const LISTED: [(&str, Field); 12] = [
    ("nvEncGetEncodeGUIDCount", 16),
    ("nvEncGetEncodeGUIDs", 40),
    ("nvEncGetEncodeCaps", 64),
    ("nvEncInitializeEncoder", 96),
    ("nvEncCreateInputBuffer", 104),
    ("nvEncCreateBitstreamBuffer", 120),
    ("nvEncEncodePicture", 136),
    ("nvEncLockBitstream", 144),
    ("nvEncUnlockBitstream", 152),
    ("nvEncLockInputBuffer", 160),
    ("nvEncUnlockInputBuffer", 168),
    ("nvEncOpenEncodeSessionEx", 240),
];

pub(super) type Guid = [u8; 16];
pub(super) const H264: Guid = guid(0x6bc8_2762, 0x4e63, 0x4ca4, 0xaa85_1e50_f321_f6bf);
pub(super) const PRESET_P1: Guid = guid(0xfc0a_8d3e, 0x45f8, 0x4cf8, 0x80c7_2988_7159_0ebf);
const HEVC: Guid = guid(0x790c_dc88, 0x4522, 0x4d7b, 0x9425_bda9_975f_7603);
/// Codecs by the names of their measurement. The last one exists since version 12.
pub(super) const CODECS: [(&str, Guid); 3] = [
    ("H.264 width", H264),
    ("HEVC width", HEVC),
    ("AV1 width", guid(0x0a35_2289, 0x0aa7, 0x4759, 0x862d_5d15_cd16_d254)),
];

/// A `GUID` in memory.
const fn guid(a: u32, b: u16, c: u16, d: u64) -> Guid {
    let last = (d.to_be() as u128) << 64;
    (a as u128 | (b as u128) << 32 | (c as u128) << 48 | last).to_le_bytes()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    type Checked = (&'static str, (usize, u32), &'static [(&'static str, Field)]);

    /// Each structure with its name, its version in the header, and the fields that are used.
    const STRUCTURES: [Checked; 9] = [
        ("NV_ENCODE_API_FUNCTION_LIST", FUNCTION_LIST, &LISTED),
        (
            "NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS",
            SESSION,
            &[
                ("deviceType", SESSION_DEVICE_TYPE),
                ("device", SESSION_DEVICE),
                ("apiVersion", SESSION_API_VERSION),
            ],
        ),
        ("NV_ENC_CAPS_PARAM", CAPABILITY, &[("capsToQuery", CAPABILITY_QUERY)]),
        (
            "NV_ENC_INITIALIZE_PARAMS",
            ENCODER,
            &[
                ("encodeGUID", ENCODER_CODEC),
                ("presetGUID", ENCODER_PRESET),
                ("encodeWidth", ENCODER_WIDTH),
                ("encodeHeight", ENCODER_HEIGHT),
                ("frameRateNum", ENCODER_RATE),
                ("frameRateDen", ENCODER_RATE_BASE),
                ("enablePTD", ENCODER_DECIDES_TYPES),
                ("tuningInfo", ENCODER_TUNING),
            ],
        ),
        (
            "NV_ENC_CREATE_INPUT_BUFFER",
            INPUT,
            &[
                ("width", INPUT_WIDTH),
                ("height", INPUT_HEIGHT),
                ("bufferFmt", INPUT_FORMAT),
                ("inputBuffer", INPUT_BUFFER),
            ],
        ),
        ("NV_ENC_CREATE_BITSTREAM_BUFFER", BITSTREAM, &[("bitstreamBuffer", BITSTREAM_BUFFER)]),
        (
            "NV_ENC_LOCK_INPUT_BUFFER",
            LOCKED_INPUT,
            &[
                ("inputBuffer", LOCKED_INPUT_BUFFER),
                ("bufferDataPtr", LOCKED_INPUT_START),
                ("pitch", LOCKED_INPUT_PITCH),
            ],
        ),
        (
            "NV_ENC_LOCK_BITSTREAM",
            LOCKED_BITSTREAM,
            &[
                ("outputBitstream", LOCKED_BITSTREAM_BUFFER),
                ("bitstreamSizeInBytes", LOCKED_BITSTREAM_SIZE),
                ("bitstreamBufferPtr", LOCKED_BITSTREAM_START),
            ],
        ),
        (
            "NV_ENC_PIC_PARAMS",
            PICTURE,
            &[
                ("inputWidth", PICTURE_WIDTH),
                ("inputHeight", PICTURE_HEIGHT),
                ("inputPitch", PICTURE_PITCH),
                ("frameIdx", PICTURE_INDEX),
                ("inputTimeStamp", PICTURE_TIME),
                ("inputBuffer", PICTURE_INPUT),
                ("outputBitstream", PICTURE_OUTPUT),
                ("bufferFmt", PICTURE_FORMAT),
                ("pictureStruct", PICTURE_STRUCTURE),
            ],
        ),
    ];

    const GUIDS: [(&str, Guid); 3] =
        [("NV_ENC_CODEC_H264", H264), ("NV_ENC_CODEC_HEVC", HEVC), ("NV_ENC_PRESET_P1", PRESET_P1)];

    /// The checks that the C compiler makes. Newer headers have other structures than version 11.
    fn program() -> String {
        let mut text = "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n#include \
                        <ffnvcodec/nvEncodeAPI.h>\n"
            .to_owned();
        text += &offsets(STRUCTURES[0].0, STRUCTURES[0].2);
        text += "#if NVENCAPI_MAJOR_VERSION == 11\n";
        for (name, (size, version), listed) in STRUCTURES {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(text, "_Static_assert(sizeof({name}) == {size}, \"{name}\");");
            let _ = writeln!(text, "_Static_assert({name}_VER == {version}u, \"{name}\");");
            text += &offsets(name, listed);
        }
        text += "#endif\nint main(void) {\n";
        for (name, guid) in GUIDS {
            let _ = write!(text, "if (memcmp(&{name}_GUID, (unsigned char[]){{");
            text += &guid.map(|byte| byte.to_string()).join(",");
            text += "}, 16)) return 1;\n";
        }
        text + "return 0;\n}\n"
    }

    /// The checks of the fields of a structure.
    fn offsets(name: &str, fields: &[(&str, Field)]) -> String {
        let mut text = String::new();
        for (field, offset) in fields {
            let _ = writeln!(
                text,
                "_Static_assert(offsetof({name}, {field}) == {offset}, \"{field}\");"
            );
        }
        text
    }

    #[test]
    #[ignore = "needs the headers of NVENC; `cargo xtask test gpu` installs them"]
    fn structures_and_identifiers_are_those_of_the_header() {
        let folder = tempfile::tempdir().unwrap();
        let [source, built] = ["check.c", "check"].map(|name| folder.path().join(name));
        std::fs::write(&source, program()).unwrap();
        let mut compiler = std::process::Command::new("cc");
        let output = compiler.arg("-o").arg(&built).arg(&source).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(std::process::Command::new(built).status().unwrap().success());
    }
}
