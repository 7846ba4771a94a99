//! Strings of the input.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// A string that is borrowed from the input unless JSON wrote it with escapes.
///
/// A `&str` field refuses an escaped string, a `String` copies every one: this is for fields that may hold anything,
/// in structs that read much and keep little.
///
/// ```
/// use configurator_sdk::{Input, Text};
///
/// let input = Input::builder().object(r#"["plain", "a\nb"]"#).build();
/// let texts: Vec<Text> = input.object()?;
/// assert_eq!(*texts[1], *"a\nb");
/// assert!(texts[0].is_borrowed() && !texts[1].is_borrowed());
/// # Ok::<(), configurator_sdk::HandlerError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(Cow<'a, str>);

impl<'a> Text<'a> {
    /// The string, which lives as long as `self`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether no copy was made.
    pub fn is_borrowed(&self) -> bool {
        matches!(self.0, Cow::Borrowed(_))
    }

    /// The rest of the string after `prefix`, still borrowed where it was.
    pub fn strip_prefix(self, prefix: &str) -> Option<Text<'a>> {
        match self.0 {
            Cow::Borrowed(text) => text
                .strip_prefix(prefix)
                .map(|rest| Text(Cow::Borrowed(rest))),
            Cow::Owned(text) => text
                .strip_prefix(prefix)
                .map(|rest| Text(Cow::Owned(rest.to_owned()))),
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Text<'a> {
        Text(Cow::Borrowed(text))
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripped_text_stays_borrowed() {
        let text = Text::from("config/tier").strip_prefix("config/").unwrap();
        assert!(text.is_borrowed());
        assert_eq!(text.as_str(), "tier");
        let owned: Text<'_> = serde_json::from_str(r#""config/\u0061""#).unwrap();
        assert_eq!(owned.strip_prefix("config/").unwrap().as_str(), "a");
        assert!(Text::from("other").strip_prefix("config/").is_none());
    }
}
