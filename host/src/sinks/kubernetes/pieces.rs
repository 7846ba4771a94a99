//! The body of an answer, which comes in pieces.

use std::iter;
use std::str::from_utf8;

use bytes::Bytes;
use configurator_background::rest::rest_if_due;

/// The size of the parts in which an answer is read, in bytes.
const PART: usize = 256 << 10;

/// The pieces of a body, in order.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pieces: Vec<Bytes>,
    size: usize,
}

/// An answer is not UTF-8.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not UTF-8")]
pub(super) struct NotText;

impl Pieces {
    /// Adds a piece to the end.
    pub(super) fn push(&mut self, piece: Bytes) {
        self.size += piece.len();
        self.pieces.push(piece);
    }

    /// Returns the number of bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns the body in parts of at most 256 KiB. Gives the memory of each piece back when its last part is dropped.
    pub(super) fn into_parts(self) -> impl Iterator<Item = Bytes> {
        self.pieces.into_iter().flat_map(|mut piece| {
            iter::from_fn(move || {
                let part = piece.split_to(piece.len().min(PART));
                (!part.is_empty()).then_some(part)
            })
        })
    }

    /// Returns the body as a text. Rests between parts.
    pub(super) fn into_text(self) -> Result<String, NotText> {
        let mut text = String::with_capacity(self.size);
        // The beginning of a character whose end is in the next part.
        let mut begun = Vec::new();
        for part in self.into_parts() {
            let whole;
            let part = match begun.is_empty() {
                true => &part[..],
                false => {
                    whole = [&begun[..], &part].concat();
                    &whole
                }
            };
            let valid = match from_utf8(part) {
                Ok(valid) => valid,
                Err(error) if error.error_len().is_some() => return Err(NotText),
                Err(error) => {
                    let (valid, _) = part.split_at(error.valid_up_to());
                    from_utf8(valid).map_err(|_| NotText)?
                }
            };
            text.push_str(valid);
            begun = part.get(valid.len()..).unwrap_or_default().to_vec();
            rest_if_due();
        }
        match begun.is_empty() {
            true => Ok(text),
            false => Err(NotText),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text that is cut after each number of bytes.
    fn check(bytes: &[u8], expected: Result<&str, NotText>) {
        for cut in 0..=bytes.len() {
            for other in cut..=bytes.len() {
                let pieces = [&bytes[..cut], &bytes[cut..other], &bytes[other..]];
                let mut body = Pieces::default();
                for piece in pieces {
                    body.push(Bytes::copy_from_slice(piece));
                }
                assert_eq!(body.size(), bytes.len());
                let text = body.into_text();
                assert_eq!(text.as_deref(), expected.as_deref(), "{cut} {other}");
            }
        }
    }

    #[test]
    fn characters_may_be_cut() {
        check("a€ä🦀".as_bytes(), Ok("a€ä🦀"));
        check(b"", Ok(""));
        check(b"a\xe2\x82", Err(NotText));
        check(b"a\xffb", Err(NotText));
        check(b"\xe2\x82a", Err(NotText));
    }
}
