//! Why a registry refuses a request.

use reqwest::{Response, StatusCode};
use serde::Deserialize;

use super::client::RegistryError;
use super::transport::receive;

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
    #[serde(default)]
    message: String,
}

/// Why an answer is no success.
pub(super) async fn refusal(answer: Response) -> RegistryError {
    let code = answer.status();
    let text = match receive(answer, MAX_REFUSAL).await {
        Ok((text, _)) => text,
        Err(_) => Vec::new(),
    };
    refused(code, &text)
}

fn refused(code: StatusCode, text: &[u8]) -> RegistryError {
    let stated =
        serde_json::from_slice(text).map_or_else(|_| Vec::new(), |Envelope { errors }| errors);
    let is = |wanted: &str| stated.iter().any(|error| error.code == wanted);
    let text = match &*stated {
        [] => String::from_utf8_lossy(text).into_owned(),
        stated => {
            let said = stated.iter();
            let said = said.map(|Stated { code, message }| format!("{code} {message}"));
            said.collect::<Vec<_>>().join("; ")
        }
    };
    let text = shortened(&text);
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
            message: text,
        },
        _ if is("TOOMANYREQUESTS") => {
            RegistryError::Unavailable("it has been asked too often".to_owned())
        }
        _ if is("UNAUTHORIZED") => RegistryError::Unauthorized,
        _ if is("DENIED") => RegistryError::Forbidden,
        code => RegistryError::Refused(format!("the registry answers {}: {text}", code.as_u16())),
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
    fn a_refusal_says_what_the_registry_says() {
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
            expect!["the registry answers 400: SIZE_INVALID too short; OWN"],
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
            expect!["the registry cannot be asked now: it answers 503: busy"],
        );
        let denied = r#"{"errors": [{"code": "DENIED"}]}"#;
        check_refused(
            400,
            denied,
            expect![
                "the registry does not let whoever asks do this: it wants a login that has the right"
            ],
        );
        assert!(
            refused(StatusCode::BAD_REQUEST, "x".repeat(1 << 20).as_bytes())
                .to_string()
                .len()
                < 400
        );
    }
}
