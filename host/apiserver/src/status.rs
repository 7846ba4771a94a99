//! What the API answers when it cannot do what was asked: a `Status`, in the words of Kubernetes.

use configurator_schema::FieldError;
use configurator_store::StoreError;
use http::StatusCode;
use serde_json::{Value, json};

use crate::resource::Resource;

/// A refusal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
    pub(crate) retry_after_seconds: Option<u32>,
    /// Sent as its message alone.
    pub(crate) is_text: bool,
}

pub(crate) type Result<T, E = Status> = std::result::Result<T, E>;

impl Status {
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            retry_after_seconds: None,
            is_text: false,
        }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details = Some(details(&resource.group, &resource.plural, name));
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// The group of this path is there, but has nothing at it.
    pub(crate) fn no_such_path() -> Self {
        let mut status = Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        );
        status.details = Some(json!({}));
        status
    }

    /// Nobody answers at this path: a plain text, as clients of the API know it.
    pub(crate) fn page_not_found() -> Self {
        let mut status = Self::new(StatusCode::NOT_FOUND, "", "404 page not found\n");
        status.is_text = true;
        status
    }

    /// A failure that Kubernetes does not classify.
    pub(crate) fn unclassified(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("{} {name:?} not found", resource.qualified()),
        )
        .about(resource, name)
    }

    pub(crate) fn namespace_not_found(name: &str) -> Self {
        let mut status = Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("namespaces {name:?} not found"),
        );
        status.details = Some(details("", "namespaces", name));
        status
    }

    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "AlreadyExists",
            format!("{} {name:?} already exists", resource.qualified()),
        )
        .about(resource, name)
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {} {name:?}: {why}",
                resource.qualified()
            ),
        )
        .about(resource, name)
    }

    pub(crate) fn modified(resource: &Resource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "Forbidden",
            format!("{} {name:?} is forbidden: {why}", resource.qualified()),
        )
        .about(resource, name)
    }

    pub(crate) fn invalid(resource: &Resource, name: &str, errors: &[FieldError]) -> Self {
        // Events are checked in the form of the core group, in which they are stored.
        let group = if crate::event::is_converted(resource) {
            ""
        } else {
            resource.group.as_str()
        };
        Self::invalid_kind(group, &resource.kind, name, errors)
    }

    pub(crate) fn invalid_kind(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        // Each is told once in the text, as Kubernetes does, and as often as it was found in the causes.
        let mut list: Vec<String> = Vec::with_capacity(errors.len());
        for text in errors.iter().map(ToString::to_string) {
            if !list.contains(&text) {
                list.push(text);
            }
        }
        let all = match list.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let mut status = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("{qualified} {name:?} is invalid: {all}"),
        );
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| json!({"reason": error.reason.as_str(), "message": error.message, "field": error.path}))
            .collect();
        let mut details = details(group, kind, name);
        insert(&mut details, "causes", Value::Array(causes));
        status.details = Some(details);
        status
    }

    pub(crate) fn method_not_allowed() -> Self {
        let mut status = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        status.details = Some(json!({}));
        status
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn too_many_requests(message: impl Into<String>) -> Self {
        let mut status = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        status.retry_after_seconds = Some(1);
        status.details = Some(json!({"retryAfterSeconds": 1}));
        status
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            message,
        )
    }

    /// The document that is sent.
    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            insert(&mut value, "reason", self.reason.into());
        }
        if let Some(details) = &self.details {
            insert(&mut value, "details", details.clone());
        }
        value
    }

    /// What a delete answers that has nothing else to show.
    pub(crate) fn success(resource: &Resource, name: &str, uid: &str) -> Value {
        let mut details = details(&resource.group, &resource.plural, name);
        insert(&mut details, "uid", uid.into());
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
    }
}

impl From<StoreError> for Status {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full { .. } | StoreError::Io { .. } | StoreError::Closed => {
                let mut status = Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "ServiceUnavailable",
                    error.to_string(),
                );
                status.retry_after_seconds = Some(1);
                status
            }
            // Without a time to retry after: clients would send again by themselves what may have been done.
            StoreError::Unknown { .. } => {
                Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", error.to_string())
            }
            StoreError::Damaged { .. } | StoreError::Panicked { .. } => Self::internal(error),
        }
    }
}

fn details(group: &str, kind: &str, name: &str) -> Value {
    let mut details = json!({});
    if !kind.is_empty() {
        insert(&mut details, "kind", kind.into());
    }
    if !name.is_empty() {
        insert(&mut details, "name", name.into());
    }
    if !group.is_empty() {
        insert(&mut details, "group", group.into());
    }
    details
}

fn insert(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value);
    }
}
