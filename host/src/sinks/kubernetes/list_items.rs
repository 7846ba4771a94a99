//! Takes the items out of the text of a list, one by one, so that no large list is in memory as one text.
//!
//! `serde_json` can read a list from a stream as well, but takes five times the processor time for it.

use bytes::{Buf, Bytes};
use configurator_background::rest::rest_if_due;
use memchr::memchr2;

use super::pieces::NotText;

/// The field that has the items, as it stands in the text.
const FIELD: &[u8] = b"\"items\"";
/// The number of open brackets between two items.
const ITEMS_DEPTH: usize = 2;

/// Why a text is no list.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotList {
    #[error(transparent)]
    NotText(#[from] NotText),
    /// A comma with nothing before or after it. The number is that of the item that is missing.
    #[error("item {0} is empty")]
    NoItem(usize),
}

/// Reads the items of a list that comes in parts.
///
/// It looks for strings and brackets alone. Whether an item, and what is around the items, is well-formed, is for the caller to check.
pub(super) struct ListItems<P> {
    parts: P,
    /// What is left of the part that is being read.
    part: Bytes,
    /// The text without the items: `{"metadata":{},"items":[]}`.
    around: Vec<u8>,
    /// Where the last string at the level of the list's fields begins in `around`.
    name: usize,
    /// The item that is being read.
    item: Vec<u8>,
    /// The number of items before it.
    before: usize,
    is_in_items: bool,
    /// The number of open brackets.
    depth: usize,
    string: InString,
}

/// Where the next byte is.
#[derive(Debug, Clone, Copy)]
enum InString {
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

impl<P: Iterator<Item = Bytes>> ListItems<P> {
    /// Begins to read. Each part is dropped as soon as it is read.
    pub(super) fn new(parts: P) -> Self {
        Self {
            parts,
            part: Bytes::new(),
            around: Vec::new(),
            name: 0,
            item: Vec::new(),
            before: 0,
            is_in_items: false,
            depth: 0,
            string: InString::Outside,
        }
    }

    /// Returns the text of the next item, and `None` at the end of the list. Rests between parts.
    pub(super) fn next(&mut self) -> Result<Option<&str>, NotList> {
        self.item.clear();
        loop {
            let run = self.run();
            let run = self.part.split_to(run);
            self.text().extend_from_slice(&run);
            if self.part.has_remaining() {
                let byte = self.part.get_u8();
                if self.mark(byte)? {
                    self.before += 1;
                    return Ok(Some(text(&self.item)?));
                }
            } else if let Some(part) = self.parts.next() {
                rest_if_due();
                self.part = part;
            } else {
                return Ok(None);
            }
        }
    }

    /// Returns the text without the items that were read.
    pub(super) fn around(&self) -> Result<&str, NotText> {
        text(&self.around)
    }

    /// The text that is being read.
    fn text(&mut self) -> &mut Vec<u8> {
        match self.is_in_items {
            true => &mut self.item,
            false => &mut self.around,
        }
    }

    /// Returns how many bytes follow before the next mark: a bracket, a comma or a beginning string that is not inside of an item.
    fn run(&mut self) -> usize {
        let mut at = 0;
        while let Some(rest) = self.part.get(at..)
            && let Some(&byte) = rest.first()
        {
            match self.string {
                InString::Escaped => self.string = InString::Inside,
                InString::Inside => match memchr2(b'"', b'\\', rest) {
                    None => return self.part.len(),
                    Some(skipped) => {
                        at += skipped;
                        self.string = match rest.get(skipped) {
                            Some(b'"') => InString::Outside,
                            _ => InString::Escaped,
                        };
                    }
                },
                InString::Outside => match byte {
                    b'"' | b'{' | b'[' | b'}' | b']' | b',' if self.depth <= ITEMS_DEPTH => {
                        return at;
                    }
                    b'"' => self.string = InString::Inside,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth -= 1,
                    _ => {}
                },
            }
            at += 1;
        }
        at
    }

    /// Reads a mark, and tells whether an item ends there.
    fn mark(&mut self, mark: u8) -> Result<bool, NotList> {
        let is_between = self.is_in_items && self.depth == ITEMS_DEPTH;
        let is_begun = !self.item.trim_ascii().is_empty();
        match mark {
            b',' if is_between => {
                return match is_begun {
                    true => Ok(true),
                    false => Err(NotList::NoItem(self.before)),
                };
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if is_between {
                    self.is_in_items = false;
                    self.around.push(mark);
                    return match is_begun || self.before == 0 {
                        true => Ok(is_begun),
                        false => Err(NotList::NoItem(self.before)),
                    };
                }
            }
            b'{' | b'[' => {
                let is_items = mark == b'[' && self.depth + 1 == ITEMS_DEPTH && self.is_field();
                self.depth += 1;
                if is_items {
                    self.around.push(mark);
                    self.is_in_items = true;
                    return Ok(false);
                }
            }
            b'"' => {
                self.string = InString::Inside;
                if !self.is_in_items && self.depth + 1 == ITEMS_DEPTH {
                    self.name = self.around.len();
                }
            }
            _ => {}
        }
        self.text().push(mark);
        Ok(false)
    }

    /// Tells whether the value that begins is that of the field `items`.
    fn is_field(&self) -> bool {
        let name = self.around.get(self.name..).unwrap_or_default();
        let colon = name.strip_prefix(FIELD);
        colon.is_some_and(|colon| colon.trim_ascii() == b":")
    }
}

fn text(bytes: &[u8]) -> Result<&str, NotText> {
    str::from_utf8(bytes.trim_ascii()).map_err(|_| NotText)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::{Expect, expect};

    use super::*;

    /// Reads a list that is cut in three, at all places, and writes its items and what is around them.
    #[track_caller]
    fn check(list: impl AsRef<[u8]>, expected: Expect) {
        let list = list.as_ref();
        let whole = read(&[list]);
        for cut in 0..=list.len() {
            for other in cut..=list.len() {
                let parts = [&list[..cut], &list[cut..other], &list[other..]];
                assert_eq!(read(&parts), whole, "{cut} {other}");
            }
        }
        expected.assert_eq(&whole);
    }

    fn read(parts: &[&[u8]]) -> String {
        let parts = parts.iter().map(|part| Bytes::copy_from_slice(part));
        let mut items = ListItems::new(parts);
        let mut read = String::new();
        loop {
            match items.next() {
                Ok(Some(item)) => writeln!(read, "{item}").unwrap(),
                Ok(None) => break read + items.around().unwrap_or("not UTF-8"),
                Err(error) => break read + &error.to_string(),
            }
        }
    }

    #[test]
    fn items_are_taken_out() {
        check(
            r#"{"kind":"L","items":[{"a":"}],{\"€"},{"b":[1,{}]} , {}],"metadata":{}}"#,
            expect![[r#"
                {"a":"}],{\"€"}
                {"b":[1,{}]}
                {}
                {"kind":"L","items":[],"metadata":{}}"#]],
        );
        check(r#" { "items" : [ ] } "#, expect![[r#"{ "items" : [] }"#]]);
        check(
            r#"{"items":["a,b\\",1]}"#,
            expect![[r#"
                "a,b\\"
                1
                {"items":[]}"#]],
        );
    }

    #[test]
    fn other_arrays_stay() {
        for other in [
            r#"{"metadata":{"items":[1,2]},"other":[3],"items":{"items":[4]}}"#,
            r#"{"items":"items","a":["items"]}"#,
            r#"[{"items":[1]}]"#,
            r#"["items",[1]]"#,
            r#""items":[1]"#,
        ] {
            assert_eq!(read(&[other.as_bytes()]), other);
        }
    }

    #[test]
    fn what_is_no_list_is_not_made_one() {
        check(
            r#"{"items":[1,,2]}"#,
            expect![[r#"
            1
            item 1 is empty"#]],
        );
        check(
            r#"{"items":[1,]}"#,
            expect![[r#"
            1
            item 1 is empty"#]],
        );
        check(r#"{"items":[,1]}"#, expect!["item 0 is empty"]);
        // The caller sees that these are not well-formed.
        check(r#"{"items":[{"a":1}"#, expect![[r#"{"items":["#]]);
        check(
            r#"{"items":[1}]"#,
            expect![[r#"
            1
            {"items":[}]"#]],
        );
        check(
            r#"{"items":[1 2]}}"#,
            expect![[r#"
            1 2
            {"items":[]}}"#]],
        );
        check("]]}}", expect!["]]}}"]);
        check(b"{\"items\":[\"\xff\"]}", expect!["it is not UTF-8"]);
        check(
            b"{\"items\":[1],\"a\":\"\xff\"}",
            expect![[r#"
            1
            not UTF-8"#]],
        );
    }
}
