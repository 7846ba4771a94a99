//! Classifies the answers of a Kubernetes API, for requests of handlers and for what the host writes itself.

use std::time::Duration;

use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::{KubernetesRequest, KubernetesVerb, PatchType};
use http::{HeaderMap, StatusCode, header};
use kube::runtime::watcher;
use serde::Deserialize;

use crate::objects;

/// The HTTP status with which a server ends a watch, or refuses to begin one. `None`: it did not answer.
pub(crate) fn watch_status(error: &watcher::Error) -> Option<u16> {
    use watcher::Error::{InitialListFailed, WatchError, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status)) => Some(status.code),
        WatchError(status) => Some(status.code),
        _ => None,
    }
}

/// What a server says in a `Status`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Told {
    #[serde(default)]
    message: String,
    #[serde(default)]
    pub(crate) reason: String,
    details: Option<ToldDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToldDetails {
    retry_after_seconds: Option<u64>,
    #[serde(default)]
    causes: Vec<ToldCause>,
}

#[derive(Debug, Default, Deserialize)]
struct ToldCause {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    field: String,
}

impl Told {
    pub(crate) fn of(status: &kube::core::Status) -> Self {
        Self {
            message: status.message.clone(),
            reason: status.reason.clone(),
            details: status.details.as_ref().map(|details| ToldDetails {
                retry_after_seconds: (details.retry_after_seconds > 0)
                    .then(|| details.retry_after_seconds.into()),
                causes: details
                    .causes
                    .iter()
                    .map(|cause| ToldCause {
                        reason: cause.reason.clone(),
                        field: cause.field.clone(),
                    })
                    .collect(),
            }),
        }
    }

    /// Whether the server refused before it looked at the object, so that the message says nothing of what it holds: for want of a right, or
    /// because the namespace is being deleted.
    pub(crate) fn is_before_reading(&self) -> bool {
        self.message.contains(" is forbidden: User \"") || self.is_terminating()
    }

    fn is_terminating(&self) -> bool {
        self.details.as_ref().is_some_and(|details| {
            details
                .causes
                .iter()
                .any(|cause| cause.reason == "NamespaceTerminating")
        })
    }

    /// What to tell a person of it.
    pub(crate) fn said(&self, status: StatusCode) -> String {
        let mut said = if self.message.is_empty() {
            status.to_string()
        } else {
            self.message.clone()
        };
        if !self.reason.is_empty() {
            said = format!("{said} ({})", self.reason);
        }
        said
    }
}

/// Whether a 422 says that a precondition does not hold. The failed test of a JSON Patch is an error in the request,
/// and none of a field; to other changes, a uid is a field that may not change.
pub(crate) fn is_mismatch(request: &KubernetesRequest, status: StatusCode, told: &Told) -> bool {
    let Some(precondition) = &request.precondition else {
        return false;
    };
    let mut fields = told
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .map(|cause| cause.field.as_str())
        .filter(|field| !field.is_empty())
        .peekable();
    let is_tested = (request.verb, request.patch_type) == (KubernetesVerb::Patch, PatchType::Json);
    status == StatusCode::UNPROCESSABLE_ENTITY
        && match fields.peek() {
            None => is_tested,
            Some(_) => precondition.uid.is_some() && fields.any(|field| field == "metadata.uid"),
        }
}

/// What the server of an etcd says, or how that cannot be reached, as a Kubernetes API passes it on: in a 500 without a
/// reason, as it answers an apply with fields of the wrong type.
const OF_STORAGE: [&str; 3] = ["etcdserver: ", "rpc error: ", "context deadline exceeded"];

/// Whether a 500 says that the server could not do it at the moment, and nothing of the request.
fn is_overload(told: &Told) -> bool {
    let is_patience = told.details.as_ref().is_some_and(|details| {
        details
            .retry_after_seconds
            .is_some_and(|seconds| seconds > 0)
    });
    is_patience
        || matches!(
            &*told.reason,
            "ServerTimeout" | "Timeout" | "TooManyRequests"
        )
        || (told.reason.is_empty()
            && OF_STORAGE
                .iter()
                .any(|beginning| told.message.starts_with(beginning)))
}

/// The kind of fault of an answer: of its HTTP status, and where that is not enough of its reason.
///
/// A server that does not know who asks (401) refuses the host as a whole: no change of an object mends that, and a
/// credential may be replaced at any time. So it is away, as one that cannot be reached.
fn kind_of(status: StatusCode, told: &Told, mutating: bool) -> FaultKind {
    let refused = if mutating {
        FaultKind::ResourceMutation
    } else {
        FaultKind::ResourceGeneric
    };
    match status.as_u16() {
        403 if mutating && told.is_terminating() => FaultKind::ResourceMutation,
        401 => FaultKind::ApiServerUnavailable,
        403 => FaultKind::ResourcePermission,
        404 => FaultKind::ResourceNotFound,
        405 | 406 | 415 => FaultKind::UnsupportedResourceOperation,
        409 => FaultKind::ResourceConflict,
        408 | 429 | 502 | 503 | 504 => FaultKind::ApiServerUnavailable,
        500 if mutating && !is_overload(told) => FaultKind::ResourceMutation,
        500 => FaultKind::ApiServerUnavailable,
        400..=499 => refused,
        _ => FaultKind::ResourceGeneric,
    }
}

pub(crate) fn classify(
    what: &str,
    mutating: bool,
    status: StatusCode,
    headers: &HeaderMap,
    told: &Told,
) -> Fault {
    let kind = kind_of(status, told, mutating);
    let retry_after = headers
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .or_else(|| {
            told.details
                .as_ref()
                .and_then(|details| details.retry_after_seconds)
        })
        .map(Duration::from_secs);
    Fault::new(kind, format!("{what}: {}", told.said(status)))
        .with_status(status.as_u16())
        .with_retry_after(retry_after)
}

/// The kind of fault when there was no answer.
pub(crate) fn classify_error(what: &str, error: &kube::Error) -> Fault {
    let kind = match error {
        kube::Error::Api(_)
        | kube::Error::HyperError(_)
        | kube::Error::Service(_)
        | kube::Error::ReadEvents(_) => FaultKind::ApiServerUnavailable,
        kube::Error::Auth(_) => FaultKind::ResourcePermission,
        _ => FaultKind::ResourceGeneric,
    };
    Fault::new(kind, format!("{what}: {}", objects::explained(error)))
}

/// The fault of an error of the client, for what the host itself asks of the API: classified as requests are.
pub(crate) fn fault_of(what: &str, mutating: bool, error: &kube::Error) -> Fault {
    let kube::Error::Api(status) = error else {
        return classify_error(what, error);
    };
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    classify(what, mutating, code, &HeaderMap::new(), &Told::of(status))
}

/// Whether a change was refused because the object whose uid was sent has gone: another has its name now, or none. Servers
/// compare it before they store, and then it does not match (409), or while they validate, and then it may not be
/// changed (422).
#[must_use]
pub fn is_of_another(status: &kube::core::Status) -> bool {
    match status.code {
        409 => ["UID in precondition", "uid mismatch"]
            .iter()
            .any(|words| status.message.contains(words)),
        422 => status
            .details
            .iter()
            .flat_map(|details| &details.causes)
            .any(|cause| cause.field == "metadata.uid"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_status_has_a_kind() {
        let table: String = [
            400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 418, 422, 429, 500, 502, 503, 504,
            507,
        ]
        .into_iter()
        .map(|code| {
            let status = StatusCode::from_u16(code).unwrap();
            let read = kind_of(status, &Told::default(), false);
            let write = kind_of(status, &Told::default(), true);
            format!("{code}: {read} / {write}\n")
        })
        .collect();
        expect![[r#"
            400: ResourceGeneric / ResourceMutation
            401: ApiServerUnavailable / ApiServerUnavailable
            403: ResourcePermission / ResourcePermission
            404: ResourceNotFound / ResourceNotFound
            405: UnsupportedResourceOperation / UnsupportedResourceOperation
            408: ApiServerUnavailable / ApiServerUnavailable
            409: ResourceConflict / ResourceConflict
            410: ResourceGeneric / ResourceMutation
            413: ResourceGeneric / ResourceMutation
            415: UnsupportedResourceOperation / UnsupportedResourceOperation
            418: ResourceGeneric / ResourceMutation
            422: ResourceGeneric / ResourceMutation
            429: ApiServerUnavailable / ApiServerUnavailable
            500: ApiServerUnavailable / ResourceMutation
            502: ApiServerUnavailable / ApiServerUnavailable
            503: ApiServerUnavailable / ApiServerUnavailable
            504: ApiServerUnavailable / ApiServerUnavailable
            507: ResourceGeneric / ResourceGeneric
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn a_500_of_a_server_that_cannot_at_the_moment_is_none_of_the_request() {
        let table: String = [
            r#"{"message": "failed to create typed patch object: .data.a: expected string, got &value.valueUnstructured{Value:1}"}"#,
            r#"{"message": "failed calling webhook", "reason": "InternalError"}"#,
            r#"{"message": "etcdserver: request timed out"}"#,
            r#"{"message": "rpc error: code = Unavailable desc = transport is closing"}"#,
            r#"{"message": "try again", "reason": "ServerTimeout"}"#,
            r#"{"message": "try again", "reason": "InternalError", "details": {"retryAfterSeconds": 1}}"#,
        ]
        .into_iter()
        .map(|text| {
            let told = serde_json::from_str(text).unwrap();
            let kind = kind_of(StatusCode::INTERNAL_SERVER_ERROR, &told, true);
            format!("{kind}: {} ({})\n", told.message, told.reason)
        })
        .collect();
        expect![[r#"
            ResourceMutation: failed to create typed patch object: .data.a: expected string, got &value.valueUnstructured{Value:1} ()
            ResourceMutation: failed calling webhook (InternalError)
            ApiServerUnavailable: etcdserver: request timed out ()
            ApiServerUnavailable: rpc error: code = Unavailable desc = transport is closing ()
            ApiServerUnavailable: try again (ServerTimeout)
            ApiServerUnavailable: try again (InternalError)
        "#]].assert_eq(&table);
    }

    #[test]
    fn the_wait_that_a_server_asks_for_is_kept() {
        let told: Told =
            serde_json::from_str(r#"{"message":"slow down","reason":"TooManyRequests","details":{"retryAfterSeconds":7}}"#)
                .unwrap();
        let fault = classify(
            "get pods a",
            false,
            StatusCode::TOO_MANY_REQUESTS,
            &HeaderMap::new(),
            &told,
        );
        assert_eq!(fault.retry_after, Some(Duration::from_secs(7)));
        expect!["ApiServerUnavailable: get pods a: slow down (TooManyRequests)"]
            .assert_eq(&fault.to_string());
    }
}
