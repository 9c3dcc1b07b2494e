//! The length-delimited fields of an encoded message, without decoding the whole message: decoded,
//! an element of two bytes occupies 24 or more.

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Why a message has no next field.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FieldError {
    /// The message is not encoded correctly.
    #[error("{0}")]
    Malformed(prost::DecodeError),
    /// A field is longer than the rest of the message.
    #[error("message is incomplete")]
    Incomplete,
}

/// Takes the next length-delimited field from the start of `message`, and skips others.
pub(crate) fn next_field<'a>(
    message: &mut &'a [u8],
) -> Result<Option<(u32, &'a [u8])>, FieldError> {
    while message.has_remaining() {
        let (tag, wire_type) = decode_key(message).map_err(FieldError::Malformed)?;
        if wire_type != WireType::LengthDelimited {
            skip_field(wire_type, tag, message, DecodeContext::default())
                .map_err(FieldError::Malformed)?;
            continue;
        }
        let length = decode_varint(message).map_err(FieldError::Malformed)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= message.len());
        let (field, rest) = message.split_at(length.ok_or(FieldError::Incomplete)?);
        *message = rest;
        return Ok(Some((tag, field)));
    }
    Ok(None)
}
