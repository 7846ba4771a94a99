//! The top-level fields of a JSON object, with unambiguous names.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The names of an object's fields, each with the text of its value, in order.
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Reads the fields of `text`. The names in `identity` must be unambiguous.
    ///
    /// Servers read duplicate fields and differences in case in different ways: some use the first of two fields with one name,
    /// others the last, and some ignore case. An object in which that could change the identity is refused.
    ///
    /// # Errors
    /// Describes the ambiguity. `what` names the object in the message.
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
            // Servers parse an apply as YAML, where this key merges another object into this one.
            if name == "<<" {
                return Err(format!(
                    "{what} has a field \"<<\", which YAML reads as a merge"
                ));
            }
        }
        Ok(fields)
    }

    /// Returns the text of a field, or `None` if it is absent or `null`.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.raw(name).filter(|text| *text != "null")
    }

    /// Returns the text of a field, including `null`.
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

/// Folds case as decoders do that ignore it. Two characters outside ASCII fold to an ASCII letter.
pub(super) fn folded(name: &str) -> String {
    name.chars()
        .map(|character| match character {
            '\u{212a}' => 'k',
            '\u{17f}' => 's',
            other => other.to_ascii_lowercase(),
        })
        .collect()
}
