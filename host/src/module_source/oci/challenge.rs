//! What a registry wants to know of who asks.

use http_auth::parser::ChallengeParser;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// What a registry wants to know of who asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A token, which another server gives.
    Token {
        realm: String,
        service: Option<String>,
    },
    /// Name and password.
    Password,
}

/// What the headers of an answer want to know. What cannot be read wants nothing.
pub(super) fn challenges(headers: &HeaderMap) -> Vec<Challenge> {
    let mut found = Vec::new();
    for value in headers.get_all(WWW_AUTHENTICATE) {
        let text = value.to_str().unwrap_or_default();
        for challenge in ChallengeParser::new(text).map_while(Result::ok) {
            let parameter = |wanted: &str| {
                let mut parameters = challenge.params.iter();
                let found = parameters.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
                found.map(|(_, value)| value.to_unescaped())
            };
            if challenge.scheme.eq_ignore_ascii_case("basic") {
                found.push(Challenge::Password);
            } else if challenge.scheme.eq_ignore_ascii_case("bearer")
                && let Some(realm) = parameter("realm")
            {
                let service = parameter("service");
                found.push(Challenge::Token { realm, service });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check_challenge(header: &str, expected: Expect) {
        let mut headers = HeaderMap::new();
        headers.insert(WWW_AUTHENTICATE, header.parse().unwrap());
        expected.assert_eq(&format!("{:?}", challenges(&headers)));
    }

    #[test]
    fn a_challenge_is_a_password_or_a_token() {
        check_challenge(r#"Basic realm="tests""#, expect!["[Password]"]);
        check_challenge(
            r#"bearer realm="https://a/token",service="a, b",scope="c""#,
            expect![[r#"[Token { realm: "https://a/token", service: Some("a, b") }]"#]],
        );
        check_challenge(
            r#"Bearer realm="https://a/token", Basic realm="b""#,
            expect![[r#"[Token { realm: "https://a/token", service: None }, Password]"#]],
        );
        for strange in ["", "Bearer", r#"Bearer realm="#, "Digest nonce=x", "\"\""] {
            check_challenge(strange, expect!["[]"]);
        }
    }
}
