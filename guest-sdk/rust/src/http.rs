//! Requests to HTTP endpoints.
//!
//! Any answer is a success, whatever its status; only a transport that fails is a fault. Redirects are not followed.
//! Addresses that are not public are refused unless the operator of the host lists the name.
//!
//! ```
//! use configurator_sdk::Request;
//! use configurator_sdk::http::Http;
//!
//! let hook = Http::post("https://hooks.example.com/deployed")
//!     .header("content-type", "application/json")
//!     .body(r#"{"app": "web"}"#);
//! assert_eq!(Request::new("hook", hook).to_string(), "hook: http POST https://hooks.example.com/deployed");
//! ```

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bindings::configurator::handler::requests::{HttpRequest, HttpResponse, Operation};
use crate::{HandlerError, json};

/// An HTTP request under construction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Http {
    request: HttpRequest,
}

impl Http {
    /// A request of any method, in upper case. The URL holds no credentials, and writes its host plainly.
    ///
    /// The host adds an `Idempotency-Key` unless there is one: the same on every attempt of the request, also after a
    /// restart of the host.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Http {
        Http {
            request: HttpRequest {
                method: method.into(),
                url: url.into(),
                headers: Vec::new(),
                body: None,
            },
        }
    }

    /// A GET.
    pub fn get(url: impl Into<String>) -> Http {
        Http::new("GET", url)
    }

    /// A POST.
    pub fn post(url: impl Into<String>) -> Http {
        Http::new("POST", url)
    }

    /// Adds a header. `host` is refused, since it follows from the URL; `content-length` must be that of the body.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Http {
        self.request.headers.push((name.into(), value.into()));
        self
    }

    /// The body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Http {
        self.request.body = Some(body.into());
        self
    }
}

impl HttpResponse {
    /// The value of the header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as `T`.
    ///
    /// # Errors
    /// Fatal, when it is not a `T` in JSON.
    pub fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, HandlerError> {
        let text = std::str::from_utf8(&self.body).ok();
        let document = text.filter(|text| serde_json::from_str::<&RawValue>(text).is_ok());
        let document =
            document.ok_or_else(|| HandlerError::fatal("the body of the answer is no JSON"))?;
        json::read(document, "the body of the answer")
    }
}

impl From<Http> for Operation {
    fn from(http: Http) -> Operation {
        Operation::Http(http.request)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;

    fn read<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, HandlerError> {
        HttpResponse {
            status: 200,
            headers: Vec::new(),
            body: body.to_owned(),
        }
        .json()
    }

    #[test]
    fn a_body_is_read_where_it_is_json() {
        assert_eq!(read::<Value>(br#" {"a": 1} "#).unwrap(), json!({"a": 1}));
        for body in [
            &b""[..],
            b"tea",
            b"{} {}",
            b"\"\xff\"",
            b"\xef\xbb\xbf{}",
            b"NaN",
        ] {
            let error = read::<Value>(body).unwrap_err();
            assert!(error.fatal);
            expect!["the body of the answer is no JSON"].assert_eq(&error.message);
        }
        expect!["cannot read the body of the answer as u8: invalid type: map, expected u8 at line 1 column 0"]
            .assert_eq(&read::<u8>(b"{}").unwrap_err().message);
    }
}
