//! Why a registry refuses a request.

use reqwest::{Response, StatusCode};
use serde::Deserialize;

use super::client::RegistryError;
use super::transport::receive;
use crate::network::authority;

/// The most bytes that are read of why something is refused.
const MAX_REFUSAL: usize = 64 << 10;

/// What a registry says of a refusal: <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#error-codes>.
#[derive(Deserialize)]
struct Envelope {
    errors: Vec<Stated>,
}

#[derive(Deserialize)]
struct Stated {
    #[serde(default)]
    code: String,
}

/// The codes of the specification. Only these are shown in messages.
const CODES: [&str; 15] = [
    "BLOB_UNKNOWN",
    "BLOB_UPLOAD_INVALID",
    "BLOB_UPLOAD_UNKNOWN",
    "DENIED",
    "DIGEST_INVALID",
    "MANIFEST_BLOB_UNKNOWN",
    "MANIFEST_INVALID",
    "MANIFEST_UNKNOWN",
    "NAME_INVALID",
    "NAME_UNKNOWN",
    "SIZE_INVALID",
    "TAG_INVALID",
    "TOOMANYREQUESTS",
    "UNAUTHORIZED",
    "UNSUPPORTED",
];

/// Why an answer is no success. Its text goes to the debug log alone: messages are shown to authors of Configurators, who choose which
/// server is asked.
pub(super) async fn refusal(answer: Response) -> RegistryError {
    let code = answer.status();
    let host = authority(answer.url());
    let text = match receive(answer, MAX_REFUSAL).await {
        Ok((text, _)) => text,
        Err(_) => Vec::new(),
    };
    tracing::debug!(
        host,
        status = code.as_u16(),
        answer = ?shortened(&String::from_utf8_lossy(&text)),
        "a registry or its token server refused a request"
    );
    refused(code, &text)
}

fn refused(code: StatusCode, text: &[u8]) -> RegistryError {
    let stated =
        serde_json::from_slice(text).map_or_else(|_| Vec::new(), |Envelope { errors }| errors);
    let is = |wanted: &str| stated.iter().any(|error| error.code == wanted);
    let known: Vec<&str> = CODES.into_iter().filter(|code| is(code)).collect();
    let answer = match &*known {
        [] => code.as_u16().to_string(),
        known => format!("{} {}", code.as_u16(), known.join(", ")),
    };
    match code {
        StatusCode::UNAUTHORIZED => RegistryError::Unauthorized,
        StatusCode::FORBIDDEN => RegistryError::Forbidden,
        StatusCode::TOO_MANY_REQUESTS => {
            RegistryError::Unavailable("it has been asked too often".to_owned())
        }
        StatusCode::NOT_FOUND => RegistryError::Missing,
        StatusCode::PAYLOAD_TOO_LARGE => RegistryError::Refused(
            "the registry, or a proxy before it, takes nothing of this size: it answers 413"
                .to_owned(),
        ),
        code if code.is_server_error() => RegistryError::Failing {
            code: code.as_u16(),
        },
        _ if is("TOOMANYREQUESTS") => {
            RegistryError::Unavailable("it has been asked too often".to_owned())
        }
        _ if is("UNAUTHORIZED") => RegistryError::Unauthorized,
        _ if is("DENIED") => RegistryError::Forbidden,
        _ => RegistryError::Refused(format!("the registry answers {answer}")),
    }
}

/// What a stranger writes has a limit.
pub(super) fn shortened(text: &str) -> String {
    let mut short: String = text.trim().chars().take(300).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check_refused(code: u16, text: &str, expected: Expect) {
        let refused = refused(StatusCode::from_u16(code).unwrap(), text.as_bytes());
        expected.assert_eq(&refused.to_string());
    }

    #[test]
    fn a_refusal_shows_known_codes_and_no_text_of_the_answer() {
        let unknown = r#"{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no manifest"}]}"#;
        check_refused(
            404,
            unknown,
            expect!["the registry has nothing of this name"],
        );
        check_refused(
            404,
            "<html>",
            expect!["the registry has nothing of this name"],
        );
        let invalid = r#"{"errors": [{"code": "SIZE_INVALID", "message": "too short", "detail": 1}, {"code": "OWN"}]}"#;
        check_refused(
            400,
            invalid,
            expect!["the registry answers 400 SIZE_INVALID"],
        );
        check_refused(
            413,
            "<html>",
            expect![
                "the registry, or a proxy before it, takes nothing of this size: it answers 413"
            ],
        );
        check_refused(
            503,
            " busy ",
            expect!["the registry cannot be asked now: it answers 503"],
        );
        let denied = r#"{"errors": [{"code": "DENIED"}]}"#;
        check_refused(
            400,
            denied,
            expect![
                "the registry does not let whoever asks do this: it wants a login that has the right"
            ],
        );
        let inner = r#"{"errors": [{"code": "s3cret", "message": "s3cret"}]}"#;
        check_refused(400, inner, expect!["the registry answers 400"]);
        check_refused(418, "s3cret", expect!["the registry answers 418"]);
    }
}
