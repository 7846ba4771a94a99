//! JSON documents as text.

use std::fmt;
use std::sync::Arc;

use memchr::memchr2_iter;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How deep arrays and objects of a document may be nested.
pub const MAX_DEPTH: usize = 100;

/// A well-formed JSON document of at most [`MAX_DEPTH`] levels.
///
/// The text is kept as it came, so what nobody touches survives byte for byte: numbers beyond 2^53,
/// the order of keys, unknown fields. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Document(Arc<str>);

/// Why a text is no [`Document`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The text is not JSON.
    #[error("not well-formed JSON: {0}")]
    Malformed(String),
    /// The nesting passes [`MAX_DEPTH`].
    #[error("nested more than {MAX_DEPTH} levels deep (at byte {at})")]
    TooDeep {
        /// Offset of the bracket that is one too many.
        at: usize,
    },
}

impl Document {
    /// Checks the text. Time is linear in its length and the stack does not grow with its depth.
    ///
    /// # Errors
    /// When the text is not exactly one JSON value, or is nested too deep.
    pub fn parse(text: impl Into<Arc<str>>) -> Result<Self, DocumentError> {
        let text = text.into();
        check_depth(&text)?;
        serde_json::from_str::<IgnoredAny>(&text)
            .map_err(|e| DocumentError::Malformed(e.to_string()))?;
        Ok(Self(text))
    }

    /// The document of a value.
    ///
    /// # Errors
    /// When the value cannot be written as JSON, or is nested too deep.
    pub fn of(value: &impl Serialize) -> Result<Self, DocumentError> {
        let text = serde_json::to_string(value)
            .map_err(|error| DocumentError::Malformed(error.to_string()))?;
        check_depth(&text)?;
        Ok(Self(text.into()))
    }

    /// The document `null`.
    #[must_use]
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The empty object `{}`.
    #[must_use]
    pub fn empty_object() -> Self {
        Self("{}".into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Length of the text in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Reads the document into a type.
    ///
    /// # Errors
    /// When the document does not have the shape of the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The document as a value. Integers of 64 bits stay exact; other numbers become `f64`.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Document {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(Box::<str>::from(raw)).map_err(serde::de::Error::custom)
    }
}

fn check_depth(text: &str) -> Result<(), DocumentError> {
    // Most documents have too few brackets to be nested too deep. To count them is quick.
    let brackets = memchr2_iter(b'{', b'[', text.as_bytes());
    if brackets.take(MAX_DEPTH + 1).count() <= MAX_DEPTH {
        return Ok(());
    }
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(DocumentError::TooDeep { at });
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let got = match Document::parse(text) {
            Ok(document) => document.to_string(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&got);
    }

    #[test]
    fn text_survives_as_it_came() {
        check(
            r#"{"b": 9007199254740993, "a": 1.10, "b": 2}"#,
            expect![[r#"{"b": 9007199254740993, "a": 1.10, "b": 2}"#]],
        );
    }

    #[test]
    fn what_is_no_json_is_refused() {
        check(
            "",
            expect!["not well-formed JSON: EOF while parsing a value at line 1 column 0"],
        );
        check(
            "{} {}",
            expect!["not well-formed JSON: trailing characters at line 1 column 4"],
        );
        check(
            r#"{"a": nope}"#,
            expect!["not well-formed JSON: expected ident at line 1 column 8"],
        );
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        let text = format!("[{:?}]", "[\"{\\".repeat(500));
        assert!(Document::parse(text).is_ok());
    }

    #[test]
    fn a_hundred_levels_are_the_limit() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(Document::parse(nested(100)).is_ok());
        check(
            &nested(101),
            expect!["nested more than 100 levels deep (at byte 100)"],
        );
        check(
            &nested(1_000_000),
            expect!["nested more than 100 levels deep (at byte 100)"],
        );
        check(
            &"[".repeat(1_000_000),
            expect!["nested more than 100 levels deep (at byte 100)"],
        );
    }
}
