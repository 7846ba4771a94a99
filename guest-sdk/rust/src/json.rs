//! JSON text on its way into a request.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::HandlerError;

/// A JSON document as text.
///
/// Made from a [`serde_json::Value`], from text that is JSON already, or from anything serialisable by [`Json::of`].
/// Text is not checked here: the host refuses an output whose documents are not JSON, and names the request.
///
/// ```
/// use configurator_sdk::Json;
///
/// assert_eq!(Json::from(serde_json::json!({"a": 1})).as_str(), r#"{"a":1}"#);
/// assert_eq!(Json::from("null").as_str(), "null");
///
/// // Within what is serialised, it is written as it stands.
/// let part = Json::from(r#"{ "n": 1E400 }"#);
/// assert_eq!(Json::of(&[part])?.as_str(), r#"[{ "n": 1E400 }]"#);
/// # Ok::<(), configurator_sdk::HandlerError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(String);

impl Json {
    /// Serialises a value.
    ///
    /// # Errors
    /// Fatal, when the value has no form in JSON, such as a map whose keys are not strings.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Json, HandlerError> {
        serde_json::to_string(value).map(Json).map_err(|error| {
            HandlerError::fatal(format!(
                "cannot write {} as JSON: {error}",
                std::any::type_name::<T>()
            ))
        })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, without a copy.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json(text)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json(text.to_owned())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Json {
        Json(value.to_string())
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Json {
        Json(value.to_string())
    }
}

/// As it stands, where the whole is written as text. A [`serde_json::Value`] has its own form of it, and of its numbers.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a document of the input.
///
/// `what` names the document in the error.
pub(crate) fn read<'a, T: serde::Deserialize<'a>>(
    text: &'a str,
    what: &str,
) -> Result<T, HandlerError> {
    serde_json::from_str(text).map_err(|error| {
        HandlerError::fatal(format!(
            "cannot read {what} as {}: {error}",
            std::any::type_name::<T>()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_within_another_stays_as_it_stands() {
        let part = Json::from(r#"{ "b": 0.10, "a": 12345678901234567890123 }"#);
        let whole = Json::of(&std::collections::BTreeMap::from([("part", &part)])).unwrap();
        assert_eq!(whole.as_str(), format!(r#"{{"part":{part}}}"#));
        let error = Json::of(&[Json::from("{")]).unwrap_err();
        assert!(error.fatal, "{error}");
    }
}
