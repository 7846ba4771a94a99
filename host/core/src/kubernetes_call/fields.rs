//! The fields of a JSON object, one level deep, without a doubt which is which.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The names of an object's fields, each with the text of its value, in order.
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// The fields of `text`, among which those called `identity` must be unmistakable.
    ///
    /// Servers differ in what they read: of two fields with one name the first or the last, of a name in other case the
    /// same or another one. So an object where that matters is refused.
    ///
    /// # Errors
    /// What is wrong. `what` names the object in the message.
    pub(super) fn of(text: &'a str, what: &str, identity: &[&str]) -> Result<Self, String> {
        let fields: Self =
            serde_json::from_str(text).map_err(|_| format!("{what} must be a JSON object"))?;
        let mut seen: Vec<&str> = Vec::new();
        for (name, _) in &fields.0 {
            if identity.contains(&&**name) {
                if seen.contains(&&**name) {
                    return Err(format!("{what} has the field `{name}` twice"));
                }
                seen.push(name);
            }
            let folded = folded(name);
            let meant = identity
                .iter()
                .find(|known| **known != *name && known.to_ascii_lowercase() == folded);
            if let Some(meant) = meant {
                return Err(format!(
                    "{what} has a field {name:?}, which some servers read as `{meant}`"
                ));
            }
            // In YAML, as which an apply is read, it merges another object into this one.
            if name == "<<" {
                return Err(format!(
                    "{what} has a field \"<<\", which YAML reads as a merge"
                ));
            }
        }
        Ok(fields)
    }

    /// The text of a field; `None` where it is absent or `null`.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.raw(name).filter(|text| *text != "null")
    }

    /// The text of a field, also where it is `null`.
    pub(super) fn raw(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.get())
    }

    /// Whether the field is a string with this value. An absent field is not.
    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.string(name).is_some_and(|own| own == value)
    }

    /// The value of a field that is a string.
    pub(super) fn string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Object).map(Self)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// A name as decoders that ignore case compare it: the letters beside ASCII that fold to one of it are two.
pub(super) fn folded(name: &str) -> String {
    name.chars()
        .map(|character| match character {
            '\u{212a}' => 'k',
            '\u{17f}' => 's',
            other => other.to_ascii_lowercase(),
        })
        .collect()
}
