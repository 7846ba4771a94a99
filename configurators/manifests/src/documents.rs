//! YAML and JSON texts, compressed or not.

use std::io::Read as _;

use configurator_sdk::HandlerError;
use flate2::read::MultiGzDecoder;
use serde_json::Value;

/// The largest text after unpacking, in bytes.
pub const MAX_TEXT: usize = 64 << 20;

/// The most documents of a file.
const MAX_DOCUMENTS: usize = 20_000;

/// The most values of a file: scalars, lists and maps. Other limits of the parser are its defaults.
const MAX_NODES: usize = 5_000_000;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads the documents of a file, which may be compressed by gzip.
///
/// # Errors
/// Fatal, if it cannot be unpacked, has more than [`MAX_TEXT`] bytes, or is neither YAML nor JSON in UTF-8. The message begins with the location.
pub fn read(bytes: Vec<u8>, location: &str) -> Result<Vec<Value>, HandlerError> {
    let bytes = match bytes.starts_with(&GZIP) {
        true => unpacked(&bytes, location)?,
        false => bytes,
    };
    let text = String::from_utf8(bytes)
        .map_err(|_| HandlerError::fatal(format!("{location}: the text is not UTF-8")))?;
    parse(&text, location)
}

/// Reads the documents of a text.
///
/// # Errors
/// Fatal, if it is neither YAML nor JSON. The message begins with the location.
pub fn parse(text: &str, location: &str) -> Result<Vec<Value>, HandlerError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: MAX_DOCUMENTS,
            max_nodes: MAX_NODES,
            // A node has two events at most, and so has a document.
            max_events: 2 * (MAX_NODES + MAX_DOCUMENTS),
        },
    };
    serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| HandlerError::fatal(format!("{location}: invalid YAML: {error}")))
}

fn unpacked(bytes: &[u8], location: &str) -> Result<Vec<u8>, HandlerError> {
    let mut text = Vec::new();
    // One byte more than is allowed tells that there is more.
    let mut decoder = MultiGzDecoder::new(bytes).take(MAX_TEXT as u64 + 1);
    decoder
        .read_to_end(&mut text)
        .map_err(|error| HandlerError::fatal(format!("{location}: invalid gzip: {error}")))?;
    if text.len() > MAX_TEXT {
        return Err(HandlerError::fatal(format!(
            "{location}: the unpacked text has more than {MAX_TEXT} bytes"
        )));
    }
    Ok(text)
}
