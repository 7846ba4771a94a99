//! Classified failures.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

use crate::request::SinkName;

/// What went wrong, in the words that every sink shares. Each kind has a page in `docs/errors/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    /// Retried as often as its policy allows, and still failing.
    RetryExceedLimit,
    /// A failure that fits no other kind.
    ResourceGeneric,
    /// The resource was not found at the server.
    ResourceNotFound,
    /// Another writer changed the resource first.
    ResourceConflict,
    /// The server refused or failed to make the change.
    ResourceMutation,
    /// The server or the configurator's capabilities forbid it.
    ResourcePermission,
    /// The sink has no such operation on this resource.
    UnsupportedResourceOperation,
    /// The Kubernetes API cannot be reached, or asks for patience.
    ApiServerUnavailable,
    /// The config store cannot be reached.
    ConfigstoreUnavailable,
    /// The secret store cannot be reached or is sealed.
    SecretstoreUnavailable,
    /// The HTTP endpoint cannot be reached.
    HttpUnavailable,
    /// The server behind an extension cannot be reached.
    ExtensionUnavailable,
    /// A `once` request was sent and its answer was lost.
    OutcomeUnknown,
    /// Not sent, because an earlier request or a dependency failed.
    NotSent,
}

/// What a run does about a fault that nothing catches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reaction {
    /// Call the same handler again with the same input, after backoff.
    Resend,
    /// Begin again at the root phase with the newest object, after backoff.
    Restart,
    /// Wait for the sink; no attempt is consumed.
    Park,
    /// End the run.
    Fail,
}

impl FaultKind {
    /// Every kind, in the order of the protocol.
    pub const ALL: [Self; 14] = [
        Self::RetryExceedLimit,
        Self::ResourceGeneric,
        Self::ResourceNotFound,
        Self::ResourceConflict,
        Self::ResourceMutation,
        Self::ResourcePermission,
        Self::UnsupportedResourceOperation,
        Self::ApiServerUnavailable,
        Self::ConfigstoreUnavailable,
        Self::SecretstoreUnavailable,
        Self::HttpUnavailable,
        Self::ExtensionUnavailable,
        Self::OutcomeUnknown,
        Self::NotSent,
    ];

    /// Whether trying again can help.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::ResourceNotFound
            | Self::ResourceConflict
            | Self::ResourceMutation
            | Self::ApiServerUnavailable
            | Self::ConfigstoreUnavailable
            | Self::SecretstoreUnavailable
            | Self::HttpUnavailable
            | Self::ExtensionUnavailable => true,
            Self::RetryExceedLimit
            | Self::ResourceGeneric
            | Self::ResourcePermission
            | Self::UnsupportedResourceOperation
            | Self::OutcomeUnknown
            | Self::NotSent => false,
        }
    }

    /// What a run does about a fault of this kind that nothing catches.
    #[must_use]
    pub const fn reaction(self) -> Reaction {
        match self {
            Self::ResourceNotFound | Self::ResourceMutation => Reaction::Resend,
            Self::ResourceConflict => Reaction::Restart,
            Self::ApiServerUnavailable
            | Self::ConfigstoreUnavailable
            | Self::SecretstoreUnavailable
            | Self::HttpUnavailable
            | Self::ExtensionUnavailable => Reaction::Park,
            Self::RetryExceedLimit
            | Self::ResourceGeneric
            | Self::ResourcePermission
            | Self::UnsupportedResourceOperation
            | Self::OutcomeUnknown
            | Self::NotSent => Reaction::Fail,
        }
    }

    /// Whether one of the host's own servers is unavailable. An HTTP endpoint or an extension is none of them.
    #[must_use]
    pub const fn is_outage(self) -> bool {
        matches!(
            self,
            Self::ApiServerUnavailable
                | Self::ConfigstoreUnavailable
                | Self::SecretstoreUnavailable
        )
    }

    /// Whether it is the request that is wrong, and not the world that it meets.
    #[must_use]
    pub const fn is_of_request(self) -> bool {
        match self {
            Self::ResourceGeneric
            | Self::ResourceMutation
            | Self::ResourcePermission
            | Self::UnsupportedResourceOperation => true,
            Self::RetryExceedLimit
            | Self::ResourceNotFound
            | Self::ResourceConflict
            | Self::ApiServerUnavailable
            | Self::ConfigstoreUnavailable
            | Self::SecretstoreUnavailable
            | Self::HttpUnavailable
            | Self::ExtensionUnavailable
            | Self::OutcomeUnknown
            | Self::NotSent => false,
        }
    }

    /// The sink that faults of this kind say is away.
    #[must_use]
    pub const fn sink(self) -> Option<SinkName> {
        match self {
            Self::ApiServerUnavailable => Some(SinkName::Kubernetes),
            Self::ConfigstoreUnavailable => Some(SinkName::Configstore),
            Self::SecretstoreUnavailable => Some(SinkName::Secretstore),
            Self::HttpUnavailable => Some(SinkName::Http),
            Self::ExtensionUnavailable => Some(SinkName::Extension),
            Self::RetryExceedLimit
            | Self::ResourceGeneric
            | Self::ResourceNotFound
            | Self::ResourceConflict
            | Self::ResourceMutation
            | Self::ResourcePermission
            | Self::UnsupportedResourceOperation
            | Self::OutcomeUnknown
            | Self::NotSent => None,
        }
    }

    /// The name in messages, metrics and documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RetryExceedLimit => "RetryExceedLimit",
            Self::ResourceGeneric => "ResourceGeneric",
            Self::ResourceNotFound => "ResourceNotFound",
            Self::ResourceConflict => "ResourceConflict",
            Self::ResourceMutation => "ResourceMutation",
            Self::ResourcePermission => "ResourcePermission",
            Self::UnsupportedResourceOperation => "UnsupportedResourceOperation",
            Self::ApiServerUnavailable => "ApiServerUnavailable",
            Self::ConfigstoreUnavailable => "ConfigstoreUnavailable",
            Self::SecretstoreUnavailable => "SecretstoreUnavailable",
            Self::HttpUnavailable => "HttpUnavailable",
            Self::ExtensionUnavailable => "ExtensionUnavailable",
            Self::OutcomeUnknown => "OutcomeUnknown",
            Self::NotSent => "NotSent",
        }
    }

    /// The kind with this [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A classified failure: its kind, what happened in words, and what the server said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[error("{kind}: {message}")]
pub struct Fault {
    /// The class.
    pub kind: FaultKind,
    /// What happened, where, and what to do, for a person. Holds no secret.
    pub message: String,
    /// The server's own status where it has one: an HTTP status, or a gRPC code.
    pub status: Option<u16>,
    /// How long the server asked to be left alone (`Retry-After`).
    pub retry_after: Option<Duration>,
}

impl Fault {
    /// A fault without a status.
    #[must_use]
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
        }
    }

    /// The same fault with the server's status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// The same fault with the server's wish to be left alone.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// Whether trying again can help.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_kind_has_one_retryability_and_one_reaction() {
        let table: String = FaultKind::ALL
            .into_iter()
            .map(|kind| {
                let retryable = if kind.is_retryable() {
                    "retryable"
                } else {
                    "final"
                };
                format!("{kind}: {retryable}, {:?}\n", kind.reaction())
            })
            .collect();
        expect![[r#"
            RetryExceedLimit: final, Fail
            ResourceGeneric: final, Fail
            ResourceNotFound: retryable, Resend
            ResourceConflict: retryable, Restart
            ResourceMutation: retryable, Resend
            ResourcePermission: final, Fail
            UnsupportedResourceOperation: final, Fail
            ApiServerUnavailable: retryable, Park
            ConfigstoreUnavailable: retryable, Park
            SecretstoreUnavailable: retryable, Park
            HttpUnavailable: retryable, Park
            ExtensionUnavailable: retryable, Park
            OutcomeUnknown: final, Fail
            NotSent: final, Fail
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn what_fails_is_what_is_not_retryable() {
        for kind in FaultKind::ALL {
            assert_eq!(
                kind.is_retryable(),
                kind.reaction() != Reaction::Fail,
                "{kind}"
            );
            assert_eq!(FaultKind::from_name(kind.name()), Some(kind));
        }
    }
}
