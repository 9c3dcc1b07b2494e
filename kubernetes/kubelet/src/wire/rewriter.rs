//! Makes requests acceptable whose `:authority` is the path of a socket.
//!
//! Kubelets before 1.26 dial a plugin's socket without naming an authority, and grpc-go
//! then sends the socket's path as one (`grpc.WithAuthority("localhost")` appears in
//! `devicemanager/plugin/v1beta1/client.go` with 1.26). A path is no authority, and the
//! HTTP/2 implementation under this crate answers such requests with `PROTOCOL_ERROR`
//! and has no option not to.
//!
//! So the bytes of a connection pass through here first. Where the first request has an
//! authority that can be accepted, everything after it passes untouched. Otherwise the
//! value is replaced in each header block that spells it out.
//!
//! That works without the compression's state (RFC 7541): a value is replaced in its
//! place and in its own representation, so that what the peer remembers at an index is
//! what the reader remembers there. The reader's entry must not be larger than the
//! peer's, or it would forget others too soon; hence a replacement of a single byte.

use std::ops::Range;

use http::uri::Authority;

/// What a connection begins with (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length, type, flags and stream of a frame (RFC 9113, section 4.1).
const FRAME_HEADER: usize = 9;

/// The longest frame that a peer may send unasked.
const LONGEST_FRAME: usize = 16 * 1024;

/// The type and flags of frames that carry headers (RFC 9113, section 6.2).
const HEADERS: u8 = 1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The index of `:authority` in the static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;

/// `localhost` in Huffman code, as kubelets from 1.26 on send it.
const LOCALHOST: &[u8] = &[0xA0, 0xE4, 0x1D, 0x13, 0x9D, 0x09];

/// What stands in for an authority that is none: one byte, not in Huffman code.
const REPLACEMENT: &[u8] = &[1, b'x'];

/// Looks at the bytes that a peer sends and replaces authorities that are none.
#[derive(Debug, Default)]
pub struct Rewriter {
    stage: Stage,
    /// The part of the preface or frame that has come.
    held: Vec<u8>,
    /// Whether an authority was replaced before: then all later ones are.
    replaces: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Preface,
    FrameHeader,
    /// In a frame of no interest, with so many bytes to come.
    Skipping(usize),
    /// In a frame with a whole header block; its length with the frame's header.
    Headers(usize),
    /// Nothing needs to be looked at any more.
    Done,
}

impl Rewriter {
    /// Whether all further bytes can pass as they are.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Takes the next bytes, however they are cut, and appends what is to be read in
    /// their place. A frame with headers is held back until it is whole.
    pub fn feed(&mut self, mut input: &[u8], output: &mut Vec<u8>) {
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

    /// Appends what was held back.
    pub fn finish(&mut self, output: &mut Vec<u8>) {
        output.append(&mut self.held);
    }

    /// Holds back what is missing of `wanted` bytes and returns the rest.
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

    /// Passes `left` bytes on and returns the rest.
    fn skip<'a>(&mut self, input: &'a [u8], left: usize, output: &mut Vec<u8>) -> &'a [u8] {
        let (taken, rest) = input.split_at(left.min(input.len()));
        output.extend_from_slice(taken);
        self.stage = match left - taken.len() {
            0 => Stage::FrameHeader,
            left => Stage::Skipping(left),
        };
        rest
    }

    /// What comes after that which is held.
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

    /// Replaces the authority in the frame that is held, if it is spelled out there and
    /// cannot be accepted.
    fn replace_authority(&mut self) -> bool {
        let Some(range) = spelled_out_authority(&self.held) else { return false };
        if is_acceptable(&self.held[range.clone()]) {
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

/// Whether a string of a header block, its length before it, can be an authority.
/// Huffman code is not decoded: that kubelets send one in it which must be replaced, or
/// the one that they send nowadays, is all there is to tell apart. Nothing depends on
/// the value. An empty one is left alone, because its replacement would be larger.
fn is_acceptable(string: &[u8]) -> bool {
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

/// Where a frame with a whole header block spells out `:authority`: the string's place,
/// its length included. None where it does not, or makes no sense.
fn spelled_out_authority(frame: &[u8]) -> Option<Range<usize>> {
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

/// Passes over a field of a header block (RFC 7541, section 6) and returns, where its
/// value is spelled out, the index of its name (0 for a name spelled out too) and the
/// value's place. None at the outside where it makes no sense.
#[allow(clippy::option_option, reason = "no sense, and no value, are two things")]
fn literal(block: &[u8], at: &mut usize) -> Option<Option<(usize, Range<usize>)>> {
    let first = *block.get(*at)?;
    let prefix = match first {
        0x80.. => {
            integer(block, at, 7)?;
            return Some(None);
        }
        0x40.. => 6,
        0x20.. => {
            // A new size of the table.
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

/// Passes over a string and returns its place, its length included (RFC 7541, 5.2).
fn string(block: &[u8], at: &mut usize) -> Option<Range<usize>> {
    let start = *at;
    let length = integer(block, at, 7)?;
    *at = at.checked_add(length)?;
    (*at <= block.len()).then_some(start..*at)
}

/// Reads an integer whose first byte has `prefix` bits of it (RFC 7541, 5.1).
fn integer(block: &[u8], at: &mut usize, prefix: u32) -> Option<usize> {
    let mask = (1 << prefix) - 1;
    let mut value = usize::from(*block.get(*at)?) & mask;
    *at += 1;
    if value < mask {
        return Some(value);
    }
    // Three more bytes hold more than any frame here.
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

    /// What `:method`, `:scheme` and `:path` look like in a request.
    const BEFORE: &[u8] = &[0x83, 0x86, 0x44, 2, b'/', b'p'];
    /// A header whose name is spelled out.
    const AFTER: &[u8] = &[0x40, 2, b't', b'e', 8, b't', b'r', b'a', b'i', b'l', b'e', b'r', b's'];

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn request(representation: u8, value: &[u8]) -> Vec<u8> {
        let field = [&[representation, u8::try_from(value.len()).unwrap()], value].concat();
        [BEFORE, &field, AFTER].concat()
    }

    /// A connection with a frame of settings and one request.
    fn connection(headers: &[u8]) -> Vec<u8> {
        [PREFACE, &frame(4, 0, &[0, 3, 0, 0, 0, 9]), headers].concat()
    }

    fn rewritten(input: &[u8], cut: usize) -> Vec<u8> {
        let mut rewriter = Rewriter::default();
        let mut output = Vec::new();
        for piece in input.chunks(cut.max(1)) {
            rewriter.feed(piece, &mut output);
        }
        rewriter.finish(&mut output);
        output
    }

    const PATH: &[u8] = b"/var/lib/kubelet/device-plugins/wddm-1.sock";

    #[test]
    fn a_path_is_replaced_in_its_own_representation() {
        // With and without indexing, and never indexed.
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
    fn padding_and_priority_stay_in_place() {
        let flags = END_HEADERS | PADDED | PRIORITY;
        let payload = |value| [&[3, 0, 0, 0, 0, 16][..], &request(0x41, value), &[0; 3]].concat();
        let sent = |value| connection(&frame(HEADERS, flags, &payload(value)));
        assert_eq!(rewritten(&sent(PATH), 5), sent(b"x"));
    }

    #[test]
    fn every_block_that_spells_it_out_is_rewritten_once_one_was() {
        let headers = |value| frame(HEADERS, END_HEADERS, &request(0x41, value));
        let indexed = frame(HEADERS, END_HEADERS, &[0x83, 0x86, 0xC0, 0xBF]);
        let sent = |value| [connection(&headers(value)), indexed.clone(), headers(value)].concat();
        assert_eq!(rewritten(&sent(PATH), 11), sent(b"x"));
    }

    #[test]
    fn what_can_be_accepted_passes_and_ends_the_looking() {
        let huffman = [&[0x41, 0x80 | 6], LOCALHOST].concat();
        let plain = [&[0x41, 9][..], b"localhost"].concat();
        for field in [huffman, plain, vec![0x41, 0], vec![]] {
            let block = [BEFORE, &field, AFTER].concat();
            let input = connection(&frame(HEADERS, END_HEADERS, &block));
            let mut rewriter = Rewriter::default();
            let mut output = Vec::new();
            rewriter.feed(&input, &mut output);
            assert_eq!(output, input);
            assert!(rewriter.is_done());
        }
    }

    #[test]
    fn a_path_in_huffman_code_is_replaced() {
        let field = [0x41, 0x80 | 3, 0x60, 0xD4, 0x8E];
        let block = [BEFORE, &field, AFTER].concat();
        let input = connection(&frame(HEADERS, END_HEADERS, &block));
        let expected = connection(&frame(HEADERS, END_HEADERS, &request(0x41, b"x")));
        assert_eq!(rewritten(&input, 100), expected);
    }

    #[test]
    fn what_is_no_http2_passes() {
        let input = b"GET / HTTP/1.1\r\nhost: /var/lib/a.sock\r\n\r\n";
        assert_eq!(rewritten(input, 3), input);
    }

    proptest! {
        /// No bytes make it fail, and nothing but an authority is changed or lost.
        #[test]
        fn any_bytes_pass_however_they_are_cut(
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
        fn headers_without_an_authority_are_left_alone(
            block in prop::collection::vec(0x80..0xFF_u8, 0..60), cut in 1..50_usize,
        ) {
            let input = connection(&frame(HEADERS, END_HEADERS, &block));
            prop_assert_eq!(rewritten(&input, cut), input);
        }

        #[test]
        fn every_authority_ends_up_acceptable(value in prop::collection::vec(1..0x7F_u8, 1..120)) {
            let headers = frame(HEADERS, END_HEADERS, &request(0x41, &value));
            let output = rewritten(&connection(&headers), 13);
            let place = spelled_out_authority(&output[PREFACE.len() + FRAME_HEADER + 6..]).unwrap();
            let authority = &output[PREFACE.len() + FRAME_HEADER + 6..][place][1..];
            prop_assert!(Authority::try_from(authority).is_ok());
        }
    }
}
