//! HTTP/2 frames (RFC 9113) for clients that do not follow the protocol.

/// The start of a connection.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A SETTINGS frame without settings.
pub(crate) const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

/// A SETTINGS frame with an initial flow-control window of 0 bytes.
pub(crate) const SETTINGS_WITHOUT_WINDOW: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// The headers of a call of the `DevicePlugin` service.
pub(crate) fn call(stream: u32, method: &str) -> Vec<u8> {
    let text = |index: u8, value: &str| {
        let length = u8::try_from(value.len()).expect("a header value has less than 127 bytes");
        [&[index, length], value.as_bytes()].concat()
    };
    let path = text(4, &format!("/v1beta1.DevicePlugin/{method}"));
    let block = [vec![0x83, 0x86], path, text(1, "localhost")].concat();
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// The last bytes of a request.
pub(crate) fn last_data(stream: u32, payload: &[u8]) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, payload)
}

/// Cancels a call.
pub(crate) fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a payload has a few bytes").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_length_kind_flags_and_stream() {
        assert_eq!(reset(3), [0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8]);
        assert_eq!(last_data(1, &[7]), [0, 0, 1, 0, 1, 0, 0, 0, 1, 7]);
    }
}
