//! Reading what a server answered.

use serde::Deserialize;

use crate::{
    ErrorKind, HandlerError, HttpResponse, Json, RequestError, RequestResult, RequestSink, json,
};

impl RequestResult {
    /// The first document of the answer as `T`.
    ///
    /// # Errors
    /// When the request failed, its error, fatal unless a retry may help; fatal when the answer has no document or
    /// the document is not a `T`. Where absence is an ordinary answer, use [`RequestResult::found`].
    pub fn object<'a, T: Deserialize<'a>>(&'a self) -> Result<T, HandlerError> {
        json::read(
            self.object_json()?,
            &format!("the result `{}`", self.request_name),
        )
    }

    /// The first document of the answer.
    ///
    /// # Errors
    /// As [`RequestResult::object`].
    pub fn object_json(&self) -> Result<&str, HandlerError> {
        self.succeeded()?;
        self.query_objects
            .first()
            .map(String::as_str)
            .ok_or_else(|| {
                HandlerError::fatal(format!("the result `{}` has no object", self.request_name))
            })
    }

    /// Every document of the answer as `T`: one for each item of a list.
    ///
    /// # Errors
    /// As [`RequestResult::object`], but no documents are an empty list.
    pub fn objects<'a, T: Deserialize<'a>>(&'a self) -> Result<Vec<T>, HandlerError> {
        self.succeeded()?;
        let what = format!("the result `{}`", self.request_name);
        self.query_objects
            .iter()
            .map(|text| json::read(text, &what))
            .collect()
    }

    /// The first document of a `get`, or nothing where the server has no such object.
    ///
    /// For requests with `onError: catchError`, whose target may be absent.
    ///
    /// # Errors
    /// When the request failed for another reason than absence; fatal unless a retry may help.
    pub fn found(&self) -> Result<Option<&str>, HandlerError> {
        match &self.error {
            Some(error) if error.kind == ErrorKind::ResourceNotFound => Ok(None),
            Some(error) => Err(failure(&self.request_name, error)),
            None => Ok(self.query_objects.first().map(String::as_str)),
        }
    }

    /// What an HTTP endpoint answered, whatever its status.
    ///
    /// # Errors
    /// As [`RequestResult::object`]; fatal when the request was none to an HTTP endpoint.
    pub fn response(&self) -> Result<&HttpResponse, HandlerError> {
        self.succeeded()?;
        self.http_response.as_ref().ok_or_else(|| {
            HandlerError::fatal(format!(
                "the result `{}` is none of an HTTP request",
                self.request_name
            ))
        })
    }

    /// Nothing, when the request succeeded.
    ///
    /// # Errors
    /// The request's error, with its name; fatal unless a retry may help.
    pub fn succeeded(&self) -> Result<(), HandlerError> {
        match &self.error {
            Some(error) => Err(failure(&self.request_name, error)),
            None => Ok(()),
        }
    }

    /// A result as the host gives it for a request that succeeded. For tests.
    pub fn answered<J: Into<Json>>(
        request_name: impl Into<String>,
        sink: RequestSink,
        objects: impl IntoIterator<Item = J>,
    ) -> RequestResult {
        RequestResult {
            request_name: request_name.into(),
            request_sink: sink,
            is_declarative: false,
            query_objects: objects
                .into_iter()
                .map(|object| object.into().into_string())
                .collect(),
            created_timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            finished_timestamp: Some("2026-01-01T00:00:00.000Z".to_owned()),
            error: None,
            http_response: None,
        }
    }

    /// A result as the host gives it for an HTTP request, with a body of JSON. For tests.
    pub fn responded(
        request_name: impl Into<String>,
        status: u16,
        body: impl Into<Json>,
    ) -> RequestResult {
        let nothing = std::iter::empty::<Json>();
        RequestResult {
            http_response: Some(HttpResponse {
                status,
                headers: Vec::new(),
                body: body.into().into_string().into_bytes(),
            }),
            ..RequestResult::answered(request_name, RequestSink::Http, nothing)
        }
    }

    /// A result as the host gives it for a request that failed and was caught. For tests.
    pub fn failed(
        request_name: impl Into<String>,
        sink: RequestSink,
        kind: ErrorKind,
        message: impl Into<String>,
    ) -> RequestResult {
        let error = RequestError {
            kind,
            message: message.into(),
            retryable: retryable(kind),
            status: None,
        };
        RequestResult {
            error: Some(error),
            ..RequestResult::answered(request_name, sink, std::iter::empty::<Json>())
        }
    }
}

fn failure(request_name: &str, error: &RequestError) -> HandlerError {
    let message = format!("the request `{request_name}` failed: {}", error.message);
    if error.retryable {
        HandlerError::retry(message)
    } else {
        HandlerError::fatal(message)
    }
}

/// The contract's table.
fn retryable(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::ResourceNotFound
        | ErrorKind::ResourceConflict
        | ErrorKind::ResourceMutation
        | ErrorKind::ApiServerUnavailable
        | ErrorKind::ConfigstoreUnavailable
        | ErrorKind::SecretstoreUnavailable
        | ErrorKind::HttpUnavailable
        | ErrorKind::ExtensionUnavailable => true,
        ErrorKind::RetryExceedLimit
        | ErrorKind::ResourceGeneric
        | ErrorKind::ResourcePermission
        | ErrorKind::UnsupportedResourceOperation
        | ErrorKind::OutcomeUnknown
        | ErrorKind::NotSent => false,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;

    fn failed(kind: ErrorKind) -> RequestResult {
        RequestResult::failed("node", RequestSink::Kubernetes, kind, "it said no")
    }

    #[test]
    fn absence_is_not_a_failure_for_found() {
        assert_eq!(failed(ErrorKind::ResourceNotFound).found().unwrap(), None);
        let nothing: [Json; 0] = [];
        assert_eq!(
            RequestResult::answered("e", RequestSink::Configstore, nothing)
                .found()
                .unwrap(),
            None
        );
        let answer = RequestResult::answered("e", RequestSink::Configstore, [json!(1)]);
        assert_eq!(answer.found().unwrap(), Some("1"));
    }

    #[test]
    fn a_failure_is_fatal_unless_a_retry_may_help() {
        let error = failed(ErrorKind::ResourcePermission).found().unwrap_err();
        assert!(error.fatal);
        expect!["the request `node` failed: it said no"].assert_eq(&error.message);
        assert!(
            !failed(ErrorKind::ApiServerUnavailable)
                .object::<Value>()
                .unwrap_err()
                .fatal
        );
        assert!(
            !failed(ErrorKind::ResourceNotFound)
                .succeeded()
                .unwrap_err()
                .fatal
        );
    }

    #[test]
    fn a_list_may_be_empty_but_an_object_may_not() {
        let nothing: [Json; 0] = [];
        let result = RequestResult::answered("pods", RequestSink::Kubernetes, nothing);
        assert!(result.objects::<Value>().unwrap().is_empty());
        expect!["the result `pods` has no object"]
            .assert_eq(&result.object::<Value>().unwrap_err().message);
    }
}
