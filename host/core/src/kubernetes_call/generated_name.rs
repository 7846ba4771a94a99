//! Names of objects that a handler leaves to the host: `metadata.generateName`.

use sha2::{Digest as _, Sha256};

use super::body::{NAME, TYPE};
use super::fields::Fields;
use crate::document::Document;
use crate::request::{KubernetesRequest, KubernetesVerb};

/// What Kubernetes makes such names of: no vowels, and nothing that is read as something else.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Letters after the prefix.
const SUFFIX: usize = 10;
/// The longest name of many kinds, in bytes.
const MAX_NAME: usize = 63;

/// The name of a `create` that has only a prefix; `None` where the request has a name itself, or no prefix.
///
/// The name is made of the prefix and of `effect`, so it is the same on each attempt: a retry finds what an attempt before has
/// created.
///
/// # Errors
/// When the body has a name of its own beside the prefix.
pub(super) fn of(request: &KubernetesRequest, effect: &str) -> Result<Option<String>, String> {
    let is_open = request.verb == KubernetesVerb::Create
        && request.name.is_empty()
        && request.subresource.is_none();
    let Some(body) = request
        .body
        .as_ref()
        .map(Document::as_str)
        .filter(|_| is_open)
    else {
        return Ok(None);
    };
    let fields = Fields::of(body, "the body", &TYPE)?;
    let metadata = fields.get("metadata").unwrap_or("{}");
    let metadata = Fields::of(metadata, "the `metadata` of the body", &NAME)?;
    let Some(prefix) = metadata
        .string("generateName")
        .filter(|prefix| !prefix.is_empty())
    else {
        return Ok(None);
    };
    if metadata.get("name").is_some() && !metadata.is("name", "") {
        return Err("the body has a `name`, and the request none: name it in both".to_owned());
    }
    let mut name = truncated(&prefix).to_owned();
    let digest = Sha256::digest(effect.as_bytes());
    let letter = |byte: &u8| {
        let at = usize::from(*byte) % LETTERS.len();
        LETTERS.get(at).copied().map(char::from)
    };
    name.extend(digest.iter().filter_map(letter).take(SUFFIX));
    Ok(Some(name))
}

/// What a name keeps of its prefix.
pub(super) fn truncated(prefix: &str) -> &str {
    let end = prefix.floor_char_boundary(MAX_NAME - SUFFIX);
    prefix.get(..end).unwrap_or(prefix)
}
