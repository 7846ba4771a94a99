//! What etcd's errors mean.

use std::time::Duration;

use configurator_core::fault::{Fault, FaultKind};
use etcd_client::Error;

/// Why a request failed.
pub enum RequestError {
    /// The client's or the server's error.
    Etcd(Error),
    /// There was no answer within this time. The client's own limit does not count the wait for a connection.
    Timeout(Duration),
}

impl RequestError {
    /// The fault that it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Etcd(error) => classify(error),
            Self::Timeout(limit) => Fault::new(
                FaultKind::ConfigstoreUnavailable,
                format!("the config store: no answer within {limit:?}"),
            ),
        }
    }

    /// Whether the same request can go well in a moment.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Etcd(error) => is_transient(error),
            Self::Timeout(_) => true,
        }
    }
}

/// gRPC's codes (google.rpc.Code), of which etcd uses these with meanings of its own.
const PERMISSION_DENIED: i32 = 7;
const RESOURCE_EXHAUSTED: i32 = 8;

/// The fault of an error.
fn classify(error: &Error) -> Fault {
    let kind = match error {
        Error::GRpcStatus(status) => kind_of(i32::from(status.code()), status.message()),
        Error::TransportError(_)
        | Error::IoError(_)
        | Error::EndpointError(_)
        | Error::Internal(_) => FaultKind::ConfigstoreUnavailable,
        Error::InvalidArgs(_)
        | Error::InvalidUri(_)
        | Error::WatchError(_)
        | Error::Utf8Error(_)
        | Error::LeaseKeepAliveError(_)
        | Error::ElectError(_)
        | Error::InvalidMetadataValue(_)
        | Error::EndpointsNotManaged => FaultKind::ResourceGeneric,
    };
    Fault::new(kind, format!("the config store: {}", explain(error)))
}

/// The kind of a gRPC status. Codes: google.rpc.Code; what etcd means by them: its `rpctypes`.
fn kind_of(code: i32, message: &str) -> FaultKind {
    match code {
        // An answer of success is no error; etcd never sends it as one.
        0 => FaultKind::ResourceGeneric,
        // Cancelled, unknown, deadline exceeded, aborted, internal, unavailable, unauthenticated: nobody said whether
        // the request was right. Of etcd's quotas (resource exhausted), an operator's help ends each.
        1 | 2 | 4 | 10 | 13 | 14 | 16 | RESOURCE_EXHAUSTED => FaultKind::ConfigstoreUnavailable,
        PERMISSION_DENIED => FaultKind::ResourcePermission,
        // etcd says "user name is empty" to who has not logged in.
        3 if message.contains("user name") => FaultKind::ConfigstoreUnavailable,
        // Unimplemented: not etcd's third API.
        12 => FaultKind::UnsupportedResourceOperation,
        // Invalid argument, not found, already exists, failed precondition, out of range, data loss: the request
        // itself.
        _ => FaultKind::ResourceGeneric,
    }
}

/// Whether the same request can go well in a moment: a member is away, or has lost its leader.
fn is_transient(error: &Error) -> bool {
    match error {
        Error::GRpcStatus(status) => matches!(i32::from(status.code()), 1 | 2 | 4 | 10 | 13 | 14),
        Error::TransportError(_) | Error::IoError(_) => true,
        _ => false,
    }
}

/// What an error says, with its causes.
pub fn explain(error: &Error) -> String {
    let mut message = match error {
        Error::GRpcStatus(status) => status.message().to_owned(),
        error => error.to_string(),
    };
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let text = cause.to_string();
        if !text.is_empty() && !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_code_has_a_kind() {
        let table: String = (0..=17)
            .map(|code| format!("{code}: {}\n", kind_of(code, "")))
            .collect();
        expect![[r#"
            0: ResourceGeneric
            1: ConfigstoreUnavailable
            2: ConfigstoreUnavailable
            3: ResourceGeneric
            4: ConfigstoreUnavailable
            5: ResourceGeneric
            6: ResourceGeneric
            7: ResourcePermission
            8: ConfigstoreUnavailable
            9: ResourceGeneric
            10: ConfigstoreUnavailable
            11: ResourceGeneric
            12: UnsupportedResourceOperation
            13: ConfigstoreUnavailable
            14: ConfigstoreUnavailable
            15: ResourceGeneric
            16: ConfigstoreUnavailable
            17: ResourceGeneric
        "#]]
        .assert_eq(&table);
        assert_eq!(
            kind_of(3, "etcdserver: user name is empty"),
            FaultKind::ConfigstoreUnavailable
        );
    }
}
