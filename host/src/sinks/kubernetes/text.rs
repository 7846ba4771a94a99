//! Joins the pieces of an answer.

use std::iter;
use std::str::from_utf8;

use bytes::Bytes;
use configurator_background::rest::rest_if_due;

/// The size of the parts in which an answer is joined, in bytes.
const PART: usize = 256 << 10;

/// An answer is not UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotText;

/// Joins pieces of a text that is about this long, and gives each back at once. It rests between parts.
pub(super) fn joined(pieces: Vec<Bytes>, size: usize) -> Result<String, NotText> {
    let mut text = String::with_capacity(size);
    // The beginning of a character whose end is in the next part.
    let mut begun = Vec::new();
    for part in pieces.into_iter().flat_map(parts) {
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

fn parts(mut piece: Bytes) -> impl Iterator<Item = Bytes> {
    iter::from_fn(move || {
        let part = piece.split_to(piece.len().min(PART));
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins a text that is cut after each number of bytes.
    fn check(bytes: &[u8], expected: Result<&str, NotText>) {
        for cut in 0..=bytes.len() {
            for other in cut..=bytes.len() {
                let pieces = [&bytes[..cut], &bytes[cut..other], &bytes[other..]];
                let pieces = pieces.map(Bytes::copy_from_slice);
                let joined = joined(pieces.to_vec(), bytes.len());
                assert_eq!(joined.as_deref(), expected.as_deref(), "{cut} {other}");
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
