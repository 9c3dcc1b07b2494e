//! Replaces `:authority` headers that contain a socket path, because `h2` rejects them.
//!
//! Kubelets before 1.26 dial a plugin's socket without setting an authority, and grpc-go then
//! sends the socket's path as the authority (`grpc.WithAuthority("localhost")` appears in
//! `devicemanager/plugin/v1beta1/client.go` in 1.26). A path is not a valid authority. The HTTP/2
//! implementation that this crate uses answers such requests with `PROTOCOL_ERROR` and has no
//! option to accept them.
//!
//! So the bytes of a connection pass through the rewriter first. If the first request has a valid
//! authority, everything after it passes unchanged. Otherwise the rewriter replaces the value in
//! each header block that contains it as a literal.
//!
//! This needs no HPACK state (RFC 7541). A value is replaced in place and keeps its
//! representation, so peer and reader store their table entries at the same indexes. The reader's
//! entry must not be larger than the peer's, or the reader would evict other entries too early.
//! For that reason the replacement is a single byte.

use std::ops::Range;

use http::uri::Authority;

/// The connection preface (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The size of a frame header: length, type, flags and stream (RFC 9113, section 4.1).
const FRAME_HEADER: usize = 9;

/// The default maximum frame size.
const LONGEST_FRAME: usize = 16 * 1024;

/// The type and flags of HEADERS frames (RFC 9113, section 6.2).
const HEADERS: u8 = 1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The index of `:authority` in the static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;

/// `localhost` in Huffman coding, as kubelets from 1.26 on send it.
const LOCALHOST: &[u8] = &[0xA0, 0xE4, 0x1D, 0x13, 0x9D, 0x09];

/// The replacement for an invalid authority: its length and one byte, not Huffman-coded.
const REPLACEMENT: &[u8] = &[1, b'x'];

/// Reads the bytes that a peer sends and replaces invalid authorities.
#[derive(Debug, Default)]
pub(super) struct AuthorityRewriter {
    stage: Stage,
    /// The received part of the current preface or frame.
    held: Vec<u8>,
    /// Whether an authority was replaced on this connection. Then all later ones are replaced.
    replaces: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Preface,
    FrameHeader,
    /// In a frame that is not inspected, with this many bytes left.
    Skipping(usize),
    /// In a frame with a complete header block. Holds the frame's length including its header.
    Headers(usize),
    /// All further bytes pass unchanged.
    Done,
}

impl AuthorityRewriter {
    /// Whether all further bytes pass unchanged.
    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Takes the next bytes, split at any position, and appends the rewritten bytes to `output`. A
    /// HEADERS frame is held back until it is complete.
    pub(super) fn feed(&mut self, mut input: &[u8], output: &mut Vec<u8>) {
        while !input.is_empty() {
            input = match self.stage {
                Stage::Preface => self.hold(input, PREFACE.len(), output),
                Stage::FrameHeader => self.hold(input, FRAME_HEADER, output),
                Stage::Headers(length) => self.hold(input, length, output),
                Stage::Skipping(left) => self.skip(input, left, output),
                Stage::Done => {
                    output.extend_from_slice(input);
                    return;
                }
            };
        }
    }

    /// Appends the bytes that were held back.
    pub(super) fn finish(&mut self, output: &mut Vec<u8>) {
        output.append(&mut self.held);
    }

    /// Holds back input until `wanted` bytes are held, and returns the rest.
    fn hold<'a>(&mut self, input: &'a [u8], wanted: usize, output: &mut Vec<u8>) -> &'a [u8] {
        let (taken, rest) = input.split_at((wanted - self.held.len()).min(input.len()));
        self.held.extend_from_slice(taken);
        if self.held.len() == wanted {
            self.stage = self.next_stage();
            if !matches!(self.stage, Stage::Headers(_)) {
                self.finish(output);
            }
        }
        rest
    }

    /// Passes `left` bytes through and returns the rest.
    fn skip<'a>(&mut self, input: &'a [u8], left: usize, output: &mut Vec<u8>) -> &'a [u8] {
        let (taken, rest) = input.split_at(left.min(input.len()));
        output.extend_from_slice(taken);
        self.stage = match left - taken.len() {
            0 => Stage::FrameHeader,
            left => Stage::Skipping(left),
        };
        rest
    }

    /// The stage after the bytes that are held.
    fn next_stage(&mut self) -> Stage {
        match self.stage {
            Stage::Preface if self.held == PREFACE => Stage::FrameHeader,
            Stage::FrameHeader => {
                let length = usize::from(self.held[0]) << 16
                    | usize::from(self.held[1]) << 8
                    | usize::from(self.held[2]);
                let whole = self.held[3] == HEADERS && self.held[4] & END_HEADERS != 0;
                if whole && (1..=LONGEST_FRAME).contains(&length) {
                    Stage::Headers(FRAME_HEADER + length)
                } else {
                    Stage::Skipping(length)
                }
            }
            Stage::Headers(_) => {
                self.replaces |= self.replace_authority();
                if self.replaces { Stage::FrameHeader } else { Stage::Done }
            }
            Stage::Preface | Stage::Skipping(_) | Stage::Done => Stage::Done,
        }
    }

    /// Replaces the authority in the frame that is held, if the frame contains it as a literal and
    /// it is invalid. Returns whether it did.
    fn replace_authority(&mut self) -> bool {
        let Some(range) = literal_authority(&self.held) else { return false };
        if is_valid_authority(&self.held[range.clone()]) {
            return false;
        }
        self.held.splice(range, REPLACEMENT.iter().copied());
        let length = self.held.len() - FRAME_HEADER;
        for (byte, shift) in self.held[..3].iter_mut().zip([16, 8, 0]) {
            *byte = u8::try_from(length >> shift & 0xFF).unwrap_or(u8::MAX);
        }
        true
    }
}

/// Whether a string of a header block, including its length prefix, is a valid authority.
///
/// Huffman coding is not decoded: a Huffman-coded authority is either `localhost`, which current
/// kubelets send, or a path that must be replaced. Nothing depends on the value. An empty value is
/// kept, because its replacement would be larger.
fn is_valid_authority(string: &[u8]) -> bool {
    let huffman = string[0] & 0x80 != 0;
    let mut at = 0;
    let value = match integer(string, &mut at, 7) {
        Some(_) => &string[at..],
        None => return true,
    };
    if huffman {
        value == LOCALHOST
    } else {
        value.is_empty() || Authority::try_from(value).is_ok()
    }
}

/// The range of a literal `:authority` value in a frame with a complete header block, including
/// the value's length prefix. `None` if there is no literal or the block is malformed.
fn literal_authority(frame: &[u8]) -> Option<Range<usize>> {
    let (mut at, end) = (FRAME_HEADER, frame.len());
    let flags = frame[4];
    let padding = if flags & PADDED == 0 { 0 } else { usize::from(*frame.get(at)?) };
    at += usize::from(flags & PADDED != 0);
    at += if flags & PRIORITY == 0 { 0 } else { 5 };
    let block = frame.get(..end.checked_sub(padding)?)?;
    while at < block.len() {
        if let Some((AUTHORITY, value)) = literal(block, &mut at)? {
            return Some(value);
        }
    }
    None
}

/// Skips a field of a header block (RFC 7541, section 6). If the value is a literal, returns the
/// index of the name (0 if the name is a literal too) and the range of the value. The outer `None`
/// means that the field is malformed.
#[allow(clippy::option_option, reason = "a malformed field is not a field without a literal value")]
fn literal(block: &[u8], at: &mut usize) -> Option<Option<(usize, Range<usize>)>> {
    let first = *block.get(*at)?;
    let prefix = match first {
        0x80.. => {
            integer(block, at, 7)?;
            return Some(None);
        }
        0x40.. => 6,
        0x20.. => {
            // Dynamic table size update.
            integer(block, at, 5)?;
            return Some(None);
        }
        _ => 4,
    };
    let name = integer(block, at, prefix)?;
    if name == 0 {
        string(block, at)?;
    }
    Some(Some((name, string(block, at)?)))
}

/// Skips a string and returns its range, including its length prefix (RFC 7541, section 5.2).
fn string(block: &[u8], at: &mut usize) -> Option<Range<usize>> {
    let start = *at;
    let length = integer(block, at, 7)?;
    *at = at.checked_add(length)?;
    (*at <= block.len()).then_some(start..*at)
}

/// Reads an integer with a prefix of `prefix` bits in its first byte (RFC 7541, section 5.1).
fn integer(block: &[u8], at: &mut usize, prefix: u32) -> Option<usize> {
    let mask = (1 << prefix) - 1;
    let mut value = usize::from(*block.get(*at)?) & mask;
    *at += 1;
    if value < mask {
        return Some(value);
    }
    // Three more bytes are enough for the length of any frame that is inspected.
    for shift in [0, 7, 14] {
        let byte = usize::from(*block.get(*at)?);
        *at += 1;
        value += (byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `:method`, `:scheme` and `:path` of a request.
    const BEFORE: &[u8] = &[0x83, 0x86, 0x44, 2, b'/', b'p'];
    /// A header with a literal name.
    const AFTER: &[u8] = &[0x40, 2, b't', b'e', 8, b't', b'r', b'a', b'i', b'l', b'e', b'r', b's'];

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn request(representation: u8, value: &[u8]) -> Vec<u8> {
        let field = [&[representation, u8::try_from(value.len()).unwrap()], value].concat();
        [BEFORE, &field, AFTER].concat()
    }

    /// A connection with a SETTINGS frame and one request.
    fn connection(headers: &[u8]) -> Vec<u8> {
        [PREFACE, &frame(4, 0, &[0, 3, 0, 0, 0, 9]), headers].concat()
    }

    fn rewritten(input: &[u8], cut: usize) -> Vec<u8> {
        let mut rewriter = AuthorityRewriter::default();
        let mut output = Vec::new();
        for piece in input.chunks(cut.max(1)) {
            rewriter.feed(piece, &mut output);
        }
        rewriter.finish(&mut output);
        output
    }

    const PATH: &[u8] = b"/var/lib/kubelet/device-plugins/wddm-1.sock";

    #[test]
    fn replaces_a_path_and_keeps_its_representation() {
        // With incremental indexing, without indexing, and never indexed.
        for representation in [0x41, 0x01, 0x11] {
            let data = frame(0, 1, b"some data");
            let sent = |value| {
                let headers = frame(HEADERS, END_HEADERS, &request(representation, value));
                [connection(&headers), data.clone()].concat()
            };
            assert_eq!(rewritten(&sent(PATH), usize::MAX), sent(b"x"));
            assert_eq!(rewritten(&sent(br"C:\var\lib\a.sock"), 7), sent(b"x"));
        }
    }

    #[test]
    fn keeps_padding_and_priority() {
        let flags = END_HEADERS | PADDED | PRIORITY;
        let payload = |value| [&[3, 0, 0, 0, 0, 16][..], &request(0x41, value), &[0; 3]].concat();
        let sent = |value| connection(&frame(HEADERS, flags, &payload(value)));
        assert_eq!(rewritten(&sent(PATH), 5), sent(b"x"));
    }

    #[test]
    fn rewrites_every_literal_authority_after_the_first() {
        let headers = |value| frame(HEADERS, END_HEADERS, &request(0x41, value));
        let indexed = frame(HEADERS, END_HEADERS, &[0x83, 0x86, 0xC0, 0xBF]);
        let sent = |value| [connection(&headers(value)), indexed.clone(), headers(value)].concat();
        assert_eq!(rewritten(&sent(PATH), 11), sent(b"x"));
    }

    #[test]
    fn a_valid_authority_passes_and_stops_the_rewriter() {
        let huffman = [&[0x41, 0x80 | 6], LOCALHOST].concat();
        let plain = [&[0x41, 9][..], b"localhost"].concat();
        for field in [huffman, plain, vec![0x41, 0], vec![]] {
            let block = [BEFORE, &field, AFTER].concat();
            let input = connection(&frame(HEADERS, END_HEADERS, &block));
            let mut rewriter = AuthorityRewriter::default();
            let mut output = Vec::new();
            rewriter.feed(&input, &mut output);
            assert_eq!(output, input);
            assert!(rewriter.is_done());
        }
    }

    #[test]
    fn replaces_a_huffman_coded_path() {
        let field = [0x41, 0x80 | 3, 0x60, 0xD4, 0x8E];
        let block = [BEFORE, &field, AFTER].concat();
        let input = connection(&frame(HEADERS, END_HEADERS, &block));
        let expected = connection(&frame(HEADERS, END_HEADERS, &request(0x41, b"x")));
        assert_eq!(rewritten(&input, 100), expected);
    }

    #[test]
    fn data_that_is_not_http2_passes_unchanged() {
        let input = b"GET / HTTP/1.1\r\nhost: /var/lib/a.sock\r\n\r\n";
        assert_eq!(rewritten(input, 3), input);
    }

    proptest! {
        /// The rewriter panics on no input, and its output does not depend on how the input is
        /// split.
        #[test]
        fn accepts_any_input_split_at_any_position(
            frames in prop::collection::vec(
                (0..10_u8, any::<u8>(), prop::collection::vec(any::<u8>(), 0..60)), 0..6),
            cut in 1..50_usize,
        ) {
            let frames: Vec<u8> =
                frames.iter().flat_map(|(kind, flags, payload)| frame(*kind, *flags, payload)).collect();
            let input = [PREFACE, &frames].concat();
            let output = rewritten(&input, usize::MAX);
            prop_assert!(output.len() <= input.len());
            prop_assert_eq!(rewritten(&input, cut), output);
        }

        #[test]
        fn headers_without_an_authority_pass_unchanged(
            block in prop::collection::vec(0x80..0xFF_u8, 0..60), cut in 1..50_usize,
        ) {
            let input = connection(&frame(HEADERS, END_HEADERS, &block));
            prop_assert_eq!(rewritten(&input, cut), input);
        }

        #[test]
        fn every_authority_is_valid_after_rewriting(value in prop::collection::vec(1..0x7F_u8, 1..120)) {
            let headers = frame(HEADERS, END_HEADERS, &request(0x41, &value));
            let output = rewritten(&connection(&headers), 13);
            let range = literal_authority(&output[PREFACE.len() + FRAME_HEADER + 6..]).unwrap();
            let authority = &output[PREFACE.len() + FRAME_HEADER + 6..][range][1..];
            prop_assert!(Authority::try_from(authority).is_ok());
        }
    }
}
