//! What the kubelet has recorded of allocations: its checkpoint.
//!
//! In come the bytes of the file; out come the allocations with the parts of their answers that say
//! what a container was made for. The kubelet writes the file beside its socket
//! (`pkg/kubelet/cm/devicemanager/checkpoint`); its checksum is not needed, because nothing is
//! allocated from it. The JSON is read token by token: the general reader of files would make the
//! program 20 KiB larger.

use prost::{DecodeError, Message};

use crate::v1beta1::ContainerAllocateResponse;

/// The name of the file in the device plugin directory.
pub const CHECKPOINT: &str = "kubelet_internal_checkpoint";

/// An allocation of devices of one resource to one container.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordedAllocation {
    /// The name of the resource.
    pub resource: String,
    /// The device IDs.
    pub device_ids: Vec<String>,
    /// The variables of the answer, by name.
    pub envs: Vec<(String, String)>,
    /// The host paths of the answer's mounts.
    pub mounts: Vec<String>,
}

/// Why a checkpoint cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CheckpointError {
    /// It is not a JSON object.
    #[error("the file is not JSON, or incomplete")]
    Json,
    /// The answer to an allocation is not text in base64.
    #[error("the recorded answer for {0} is not in base64")]
    Base64(String),
    /// The answer to an allocation is not a message.
    #[error("the recorded answer for {0} is malformed")]
    Answer(String, #[source] DecodeError),
}

/// The depth of an entry: `{"Data": {"PodDeviceEntries": [{`.
const ENTRY_DEPTH: usize = 3;

/// The allocations of resources for which `is_ours` holds, in the checkpoint `bytes`. The device IDs
/// are a list up to Kubernetes 1.19, and later a list for each NUMA node, whose key is a number.
///
/// # Errors
/// The file is not a checkpoint.
pub fn recorded_allocations(
    bytes: &[u8],
    is_ours: impl Fn(&str) -> bool,
) -> Result<Vec<RecordedAllocation>, CheckpointError> {
    let mut tokens = Tokens(bytes);
    let (mut depth, mut in_entries, mut field) = (0, false, String::new());
    let (mut entry, mut answer) = (RecordedAllocation::default(), String::new());
    let mut allocations = Vec::new();
    while let Some(token) = tokens.next()? {
        match token {
            Token::Open => depth += 1,
            Token::Close if depth == 0 => return Err(CheckpointError::Json),
            Token::Close => {
                if in_entries && depth == ENTRY_DEPTH {
                    let (found, answer) = (std::mem::take(&mut entry), std::mem::take(&mut answer));
                    if is_ours(&found.resource) {
                        allocations.push(with_answer(found, &answer)?);
                    }
                }
                depth -= 1;
            }
            Token::Key(key) => {
                if depth + 1 == ENTRY_DEPTH {
                    in_entries = key == "PodDeviceEntries";
                }
                if key.parse::<i64>().is_err() {
                    field = key;
                }
            }
            Token::Text(text) => match field.as_str() {
                "ResourceName" => entry.resource = text,
                "DeviceIDs" => entry.device_ids.push(text),
                "AllocResp" => answer = text,
                _ => {}
            },
        }
    }
    if depth == 0 && !field.is_empty() { Ok(allocations) } else { Err(CheckpointError::Json) }
}

fn with_answer(
    mut allocation: RecordedAllocation,
    answer: &str,
) -> Result<RecordedAllocation, CheckpointError> {
    let Some(answer) = from_base64(answer.as_bytes()) else {
        return Err(CheckpointError::Base64(allocation.resource));
    };
    match ContainerAllocateResponse::decode(&*answer) {
        Ok(answer) => {
            allocation.envs = answer.envs.into_iter().collect();
            allocation.mounts = answer.mounts.into_iter().map(|mount| mount.host_path).collect();
            Ok(allocation)
        }
        Err(error) => Err(CheckpointError::Answer(allocation.resource, error)),
    }
}

/// The parts of JSON that are read. Lists, numbers and the other scalars are skipped.
enum Token {
    /// The start of an object.
    Open,
    /// The end of an object.
    Close,
    /// A text before a colon.
    Key(String),
    /// Another text.
    Text(String),
}

/// What is left of a JSON text.
struct Tokens<'a>(&'a [u8]);

impl Tokens<'_> {
    fn next(&mut self) -> Result<Option<Token>, CheckpointError> {
        while let Some((byte, rest)) = self.0.split_first() {
            self.0 = rest;
            match byte {
                b'{' => return Ok(Some(Token::Open)),
                b'}' => return Ok(Some(Token::Close)),
                b'"' => {
                    let text = self.text().ok_or(CheckpointError::Json)?;
                    self.0 = self.0.trim_ascii_start();
                    let is_key = self.0.first() == Some(&b':');
                    return Ok(Some(if is_key { Token::Key(text) } else { Token::Text(text) }));
                }
                b'[' | b']' | b',' | b':' | b'-' | b'.' => {}
                byte if byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() => {}
                _ => return Err(CheckpointError::Json),
            }
        }
        Ok(None)
    }

    /// The rest of a text, up to its quotation mark.
    fn text(&mut self) -> Option<String> {
        let mut text = Vec::new();
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            match byte {
                b'"' => return String::from_utf8(text).ok(),
                b'\\' => {
                    let (escape, rest) = self.0.split_first()?;
                    self.0 = rest;
                    match escape {
                        b'n' => text.push(b'\n'),
                        b'r' => text.push(b'\r'),
                        b't' => text.push(b'\t'),
                        b'u' => {
                            let (digits, rest) = self.0.split_at_checked(4)?;
                            self.0 = rest;
                            let code =
                                u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
                            // Go escapes no character that needs two codes.
                            let character = char::from_u32(code)?;
                            text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        other => text.push(*other),
                    }
                }
                other => text.push(*other),
            }
        }
    }
}

/// The bytes that `text` encodes, in the standard alphabet with padding.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let digits = &text[..text.len() - padding];
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut bits: u32 = 0;
        for byte in group {
            let digit = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(digit);
        }
        let complete = group.len() * 6 / 8;
        bits <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=complete]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{ContainerResponse, Mount};

    const GPU: &str = "directx.microsoft.com/display";

    /// As `encoding/base64` of Go writes it.
    fn to_base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            let bits = bits << (8 * (3 - group.len()));
            for n in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * n) & 63) as usize];
                text.push(if n <= group.len() { char::from(digit) } else { '=' });
            }
        }
        text
    }

    fn answer() -> ContainerResponse {
        let mount = |file: &str| Mount {
            container_path: format!(r"C:\Windows\System32\{file}"),
            host_path: format!(r"C:\store\{file}"),
            read_only: true,
        };
        ContainerResponse {
            envs: HashMap::from([("DIRECTX_DEVICE_0_NAME".to_owned(), "é".to_owned())])
                .into_iter()
                .collect(),
            mounts: (0..500).map(|n| mount(&format!("{n}.dll"))).collect(),
            ..ContainerResponse::default()
        }
    }

    /// A checkpoint as Go's encoder writes it: `&` and `<` are escaped.
    fn checkpoint(ids: &str, answer: &str) -> String {
        format!(
            r#"{{"Data":{{"PodDeviceEntries":[{{"PodUID":"f3c1","ContainerName":"main","ResourceName":"{GPU}","DeviceIDs":{ids},"AllocResp":{answer}}},{{"PodUID":"f3c1","ContainerName":"main","ResourceName":"example.com/other","DeviceIDs":{{"-1":["x"]}},"AllocResp":"?"}}],"RegisteredDevices":{{"{GPU}":["a"]}}}},"Checksum":1717345325}}"#
        )
    }

    fn read(text: &str) -> Result<Vec<RecordedAllocation>, String> {
        let read = recorded_allocations(text.as_bytes(), |name| name == GPU);
        read.map_err(|error| crate::text::ErrorChain(&error).to_string())
    }

    #[test]
    fn an_allocation_has_its_devices_and_what_its_container_was_made_for() {
        let encoded = format!("\"{}\"", to_base64(&answer().encode_to_vec()));
        let id = r"PCI\VEN_10DE&DEV_1EB8\4&2&0\0".to_owned();
        let quoted = r#""PCI\\VEN_10DE\u0026DEV_1EB8\\4\u00262\u00260\\0""#;
        // The third is the form up to Kubernetes 1.19.
        for (ids, expected) in [
            (format!(r#"{{"-1":[{quoted}]}}"#), vec![id.clone()]),
            (format!(r#"{{"0":[{quoted}],"1":["b"]}}"#), vec![id.clone(), "b".to_owned()]),
            (format!("[{quoted}]"), vec![id.clone()]),
            ("null".to_owned(), vec![]),
        ] {
            let read = read(&checkpoint(&ids, &encoded)).unwrap();
            assert_eq!(read.len(), 1, "another resource is not ours");
            assert_eq!((read[0].resource.as_str(), &read[0].device_ids), (GPU, &expected));
            assert_eq!(read[0].envs, [("DIRECTX_DEVICE_0_NAME".to_owned(), "é".to_owned())]);
            assert_eq!((read[0].mounts.len(), &*read[0].mounts[7]), (500, r"C:\store\7.dll"));
        }
    }

    #[test]
    fn a_kubelet_without_allocations_has_a_checkpoint_too() {
        for entries in ["null", "[]"] {
            let text = format!(
                r#"{{"Data":{{"PodDeviceEntries":{entries},"RegisteredDevices":{{}}}},"Checksum":1}}"#
            );
            assert_eq!(read(&text), Ok(vec![]));
        }
        assert_eq!(read(&checkpoint("[]", "null")).unwrap()[0].mounts, Vec::<String>::new());
    }

    #[test]
    fn a_file_that_is_no_checkpoint_is_refused_with_the_reason() {
        let whole = checkpoint("[]", "null");
        let json = "the file is not JSON, or incomplete";
        let answer = |text: &str| format!("the recorded answer for {GPU} is {text}");
        for (text, expected) in [
            ("", json),
            ("7", json),
            ("{", json),
            ("}{", json),
            ("not a checkpoint?", json),
            (r#"{"Data":{"PodDeviceEntries":[{"ResourceName":"\u12"}]}}"#, json),
            (&whole[..whole.len() - 1], json),
            (&whole[..whole.len() / 2], json),
            (&checkpoint("[]", "\"A B\""), &answer("not in base64")),
            (&checkpoint("[]", "\"EgQK\""), &answer("malformed: failed to decode")),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn base64_round_trips(bytes: Vec<u8>) {
            prop_assert_eq!(from_base64(to_base64(&bytes).as_bytes()), Some(bytes));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in r"\PC*", bytes: Vec<u8>) {
            let _ = from_base64(text.as_bytes());
            let _ = recorded_allocations(&bytes, |_| true);
            let _ = recorded_allocations(format!("{{\"{text}").as_bytes(), |_| true);
        }
    }
}
