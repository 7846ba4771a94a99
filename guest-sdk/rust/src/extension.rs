//! Requests to sinks that the embedder of the host adds.
//!
//! ```
//! use configurator_sdk::Request;
//! use configurator_sdk::extension::Extension;
//! use serde_json::json;
//!
//! let address = Extension::new("dns").request_with("upsert", "example.org/www", json!({"a": "192.0.2.1"}));
//! let request = Request::new("address", address);
//! assert_eq!(request.to_string(), r#"address: extension dns upsert example.org/www {"a":"192.0.2.1"}"#);
//! ```

use crate::Json;
use crate::bindings::configurator::handler::requests::{ExtensionRequest, Operation};

/// An extension by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Extension {
    name: String,
}

impl Extension {
    /// This extension. A host without it refuses the request with `UnsupportedResourceOperation`.
    pub fn new(name: impl Into<String>) -> Extension {
        Extension { name: name.into() }
    }

    /// Makes a request with this verb, which the extension defines, for this target.
    pub fn request(self, verb: impl Into<String>, target: impl Into<String>) -> ExtensionRequest {
        ExtensionRequest {
            extension: self.name,
            verb: verb.into(),
            target: target.into(),
            body: None,
        }
    }

    /// As [`request`](Extension::request), with a body.
    pub fn request_with(
        self,
        verb: impl Into<String>,
        target: impl Into<String>,
        body: impl Into<Json>,
    ) -> ExtensionRequest {
        ExtensionRequest {
            body: Some(body.into().into_string()),
            ..self.request(verb, target)
        }
    }
}

impl From<ExtensionRequest> for Operation {
    fn from(request: ExtensionRequest) -> Operation {
        Operation::Extension(request)
    }
}
