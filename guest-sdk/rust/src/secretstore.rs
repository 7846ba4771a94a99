//! Requests to the secret store.
//!
//! ```
//! use configurator_sdk::Request;
//! use configurator_sdk::secretstore::Secret;
//!
//! let request = Request::new("secret", Secret::new("pod-shop-web-1").create());
//! assert_eq!(request.to_string(), "secret: secret create pod-shop-web-1");
//! ```

use crate::Json;
use crate::bindings::configurator::handler::desired::SecretContent;
use crate::bindings::configurator::handler::requests::{Operation, SecretRequest, SecretVerb};

/// A secret by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Secret {
    name: String,
}

impl Secret {
    /// This secret.
    pub fn new(name: impl Into<String>) -> Secret {
        Secret { name: name.into() }
    }

    /// Reads the secret: `{"name", "version", "value"}`. Keep the value out of log lines, Events and statuses; the host
    /// redacts it there, and in messages of faults, as a second line of defence.
    pub fn get(self) -> SecretRequest {
        self.request(SecretVerb::Get, None)
    }

    /// Creates the secret with a value that the host generates; one that exists is success.
    pub fn create(self) -> SecretRequest {
        self.request(SecretVerb::Create, None)
    }

    /// Creates the secret with this value; one that exists is success and keeps its value.
    pub fn create_with(self, value: impl Into<Json>) -> SecretRequest {
        self.request(SecretVerb::Create, Some(value.into()))
    }

    /// Writes a value that the host generates in the place of this version; 0 stands for a secret that is absent. Another version is a
    /// conflict.
    pub fn update(self, version: u64) -> SecretRequest {
        SecretRequest {
            version: Some(version),
            ..self.request(SecretVerb::Update, None)
        }
    }

    /// Writes this value in the place of this version; 0 stands for a secret that is absent. Another version is a conflict, unless it has the
    /// value already.
    pub fn update_with(self, version: u64, value: impl Into<Json>) -> SecretRequest {
        SecretRequest {
            version: Some(version),
            ..self.request(SecretVerb::Update, Some(value.into()))
        }
    }

    /// As an entry of a set, with a value that the host generates once.
    pub fn content(self) -> SecretContent {
        SecretContent {
            secret_name: self.name,
            value: None,
            partition: None,
        }
    }

    /// As an entry of a set, with this value.
    pub fn content_with(self, value: impl Into<Json>) -> SecretContent {
        SecretContent {
            value: Some(value.into().into_string()),
            ..self.content()
        }
    }

    /// Deletes the secret. One that is absent is success.
    pub fn delete(self) -> SecretRequest {
        self.request(SecretVerb::Delete, None)
    }

    fn request(self, verb: SecretVerb, value: Option<Json>) -> SecretRequest {
        SecretRequest {
            secret_name: self.name,
            verb,
            value: value.map(Json::into_string),
            version: None,
        }
    }
}

impl From<SecretRequest> for Operation {
    fn from(request: SecretRequest) -> Operation {
        Operation::Secret(request)
    }
}
