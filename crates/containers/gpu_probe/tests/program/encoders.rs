//! Video encoders with libraries of these tests.
#![cfg(target_os = "linux")]

use crate::doubles::{libraries, row, run};

/// The fault of an API's library, and of its device.
fn faults(api: &str, fault: &str) -> [String; 2] {
    let row = row(api, fault);
    assert_eq!(row["verdict"], "failed", "{row}");
    [&row["fault"], &row["devices"][0]["fault"]]
        .map(|fault| fault["message"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn nvenc_encodes_ten_frames() {
    let row = row("nvenc", "");
    assert_eq!(row["verdict"], "ok", "{row}");
    assert_eq!(row["library"]["version"], "NVENC 12.2");
    let device = &row["devices"][0];
    assert_eq!((&device["name"], &device["luid"]), (&"Double T4".into(), &70_000.into()));
    let names: Vec<_> =
        device["measurements"].as_array().unwrap().iter().map(|m| &m["name"]).collect();
    assert_eq!(names, ["H.264 width", "first frame", "H.264 at 640x360"]);
    assert_eq!(device["measurements"][0]["value"], 4096.0);
}

#[test]
fn faults_of_nvenc_are_named() {
    let device = |fault| faults("nvenc", fault)[1].clone();
    let busy = "nvEncOpenEncodeSessionEx failed with 10 (NV_ENC_ERR_OUT_OF_MEMORY)";
    assert_eq!(device("busy"), busy);
    let refused = "nvEncInitializeEncoder failed with 8 (NV_ENC_ERR_INVALID_PARAM)";
    assert_eq!(device("refused"), refused);
    assert_eq!(device("empty"), "wrong result: frame 3 is no H.264: 0 bytes");
    let parameters = "wrong result: the first frame has no parameters of H.264";
    assert_eq!(device("other-frame"), parameters);
    let library = |fault| faults("nvenc", fault)[0].clone();
    assert_eq!(library("old-encoder"), "the driver has NVENC 10.0, older than 11.1");
    let missing = "the driver has no function `nvEncEncodePicture`";
    assert_eq!(library("missing-function"), missing);
    assert!(library("mismatch").starts_with("cuInit failed with 803"));
}

#[test]
fn a_gpu_without_encoder_is_no_broken_driver() {
    let named = run(&["nvenc"], libraries(), "no-encoder");
    assert_eq!(named.code, Some(1), "{named}");
    let line = "nvenc    absent         no device of CUDA has an encoder\n";
    assert!(named.stdout.contains(line), "{named}");
    let beside = run(&["cuda", "nvenc"], libraries(), "no-encoder");
    assert!(beside.stdout.contains(&format!("{line}failed: 1 ok, ")), "{beside}");
}

#[test]
fn amf_starts() {
    let row = row("amf", "");
    assert_eq!((&row["verdict"], &row["library"]["version"]), (&"ok".into(), &"AMF 1.4.34".into()));
    assert_eq!(faults("amf", "no-runtime")[1], "AMFInit failed with 12");
    assert_eq!(faults("amf", "no-object")[1], "AMFInit returned no object");
}

#[test]
fn quick_sync_lists_its_codecs() {
    let text = run(&["qsv"], libraries(), "").stdout;
    assert!(text.contains(", Quick Sync Video 2.9, "), "{text}");
    let line = "  encoder session, H.264 encoder 1, HEVC encoder 1\n";
    assert!(text.contains(line), "{text}");
    assert_eq!(faults("qsv", "lost")[0], "MFXInit failed with -17");
    let none = "the session has no encoder for H.264, HEVC or AV1";
    assert_eq!(faults("qsv", "no-codec")[1], none);
    assert_eq!(row("qsv", "no-intel")["verdict"], "absent");
}
