//! A text in pieces, of which the large ones are shared and not copied.

use std::collections::VecDeque;
use std::mem;

use bytes::{Bytes, BytesMut};

/// A piece of at least this size in bytes stays a piece of its own; smaller ones are joined.
const LARGE: usize = 64 << 10;

/// The pieces of a text, in order. None is empty.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pieces: VecDeque<Bytes>,
    /// What was added after the last piece.
    last: BytesMut,
}

impl Pieces {
    /// Adds to the end.
    pub(crate) fn push(&mut self, piece: &Bytes) {
        if piece.len() < LARGE {
            self.push_slice(piece);
        } else {
            self.finish();
            self.pieces.push_back(piece.clone());
        }
    }

    /// Adds a copy to the end.
    pub(crate) fn push_slice(&mut self, piece: &[u8]) {
        self.last.extend_from_slice(piece);
        if self.last.len() >= LARGE {
            self.finish();
        }
    }

    /// Tells whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.last.is_empty()
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum::<usize>() + self.last.len()
    }

    /// Removes the first piece.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        if self.pieces.is_empty() {
            self.finish();
        }
        self.pieces.pop_front()
    }

    /// Joins them.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        let Some(first) = self.pop() else {
            return Bytes::new();
        };
        if self.is_empty() {
            return first;
        }
        let mut joined = BytesMut::with_capacity(first.len() + self.len());
        joined.extend_from_slice(&first);
        while let Some(piece) = self.pop() {
            joined.extend_from_slice(&piece);
        }
        joined.freeze()
    }

    fn finish(&mut self) {
        if !self.last.is_empty() {
            self.pieces.push_back(mem::take(&mut self.last).freeze());
        }
    }
}

impl From<Bytes> for Pieces {
    fn from(whole: Bytes) -> Self {
        let mut pieces = Self::default();
        if !whole.is_empty() {
            pieces.pieces.push_back(whole);
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds pieces of these lengths, and checks the lengths of those that come out.
    #[track_caller]
    fn check(added: &[usize], expected: &[usize]) {
        let mut pieces = Pieces::default();
        let mut text = Vec::new();
        for (number, length) in added.iter().enumerate() {
            let piece = Bytes::from(vec![number as u8; *length]);
            text.extend_from_slice(&piece);
            pieces.push(&piece);
        }
        assert_eq!(pieces.len(), text.len());
        let got: Vec<Bytes> = std::iter::from_fn(|| pieces.pop()).collect();
        assert_eq!(got.iter().map(Bytes::len).collect::<Vec<_>>(), expected);
        assert_eq!(got.concat(), text);
        assert!(pieces.is_empty());
    }

    #[test]
    fn small_pieces_are_joined_and_large_ones_stay() {
        check(&[], &[]);
        check(&[0], &[]);
        check(&[1, 2, 3], &[6]);
        check(&[1, LARGE, 2, 3, LARGE + 1], &[1, LARGE, 5, LARGE + 1]);
        check(&[LARGE / 2, LARGE / 2, 7], &[LARGE, 7]);
    }

    #[test]
    fn a_large_piece_is_not_copied() {
        let large = Bytes::from(vec![0; LARGE]);
        let mut pieces = Pieces::default();
        pieces.push(&large);
        assert_eq!(pieces.pop().unwrap().as_ptr(), large.as_ptr());
    }
}
