//! Bytes in JSON: as a text where they are one, else as a list of numbers.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Either<'b> {
    Text(std::borrow::Cow<'b, str>),
    Bytes(std::borrow::Cow<'b, [u8]>),
}

impl<'b> Either<'b> {
    fn of(bytes: &'b [u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.into()),
            Err(_) => Self::Bytes(bytes.into()),
        }
    }

    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_owned().into_bytes(),
            Self::Bytes(bytes) => bytes.into_owned(),
        }
    }
}

/// For `#[serde(with)]`.
pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    Either::of(bytes).serialize(serializer)
}

/// For `#[serde(with)]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    Ok(Either::deserialize(deserializer)?.bytes())
}

/// As above, of bytes that there may be.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Either, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        bytes.as_deref().map(Either::of).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let either: Option<Either<'_>> = Option::deserialize(deserializer)?;
        Ok(either.map(Either::bytes))
    }
}
