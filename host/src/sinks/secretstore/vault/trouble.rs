//! What went wrong at Vault, and which kind of fault that is.

use std::time::Duration;

use configurator_core::fault::{Fault, FaultKind};

/// What went wrong with one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// There is no connection: nothing was sent.
    Connect,
    /// The node has asked to be left alone: nothing was sent.
    Throttled,
    /// There was no answer in time.
    Timeout,
    /// The connection ended before the answer did.
    Broken,
    /// The answer is too long.
    TooLong,
    /// The answer is not one that Vault gives: something else stands before it, or is there instead.
    Unreadable,
    /// The node names another one, to which nothing may be sent.
    Redirect,
    /// An answer that is no success.
    Status(u16, Said),
}

/// What the text of an answer adds to its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Another writer was first.
    CheckAndSet,
    /// The engine is being upgraded and says when it is back.
    Upgrading,
    /// Nothing is mounted there.
    NoHandler,
    /// The node is a standby that knows of no active one.
    NoActiveNode,
    /// A token has had the longest life that it may.
    LifeIsOver,
    /// Nothing that changes its meaning.
    Nothing,
}

/// What an exchange was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// To log in, to renew, or to find out whether Vault can be used.
    Login,
    /// To read or write a secret.
    Request,
}

/// What went wrong, where, and what was said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What went wrong.
    pub cause: Cause,
    /// Where and how, for a person.
    pub text: String,
    /// How long the node asked to be left alone.
    pub retry_after: Option<Duration>,
}

impl Trouble {
    /// The fault of a step that this ended. `what` names it.
    pub fn fault(&self, step: Step, what: &str) -> Fault {
        let kind = kind_of(step, self.cause);
        let fault = Fault::new(kind, format!("{what}: {}", self.text));
        let fault = match self.cause {
            Cause::Status(status, _) => fault.with_status(status),
            Cause::Connect
            | Cause::Throttled
            | Cause::Timeout
            | Cause::Broken
            | Cause::TooLong
            | Cause::Unreadable
            | Cause::Redirect => fault,
        };
        fault.with_retry_after(self.retry_after)
    }

    /// Whether another node may answer what this one could not: it has done nothing.
    pub fn is_of_the_node(&self) -> bool {
        match self.cause {
            Cause::Connect | Cause::Throttled | Cause::Redirect => true,
            Cause::Status(status, said) => {
                matches!(status, 472 | 501 | 503) || said == Said::NoActiveNode
            }
            Cause::Timeout | Cause::Broken | Cause::TooLong | Cause::Unreadable => false,
        }
    }
}

impl Said {
    /// What the errors of an answer add to its status.
    pub fn of(errors: &str) -> Self {
        if errors.contains("check-and-set parameter did not match") {
            Self::CheckAndSet
        } else if errors.contains("will be unavailable for a brief period") {
            Self::Upgrading
        } else if errors.contains("no handler for route") {
            Self::NoHandler
        } else if errors.contains("active cluster node not found") {
            Self::NoActiveNode
        } else if errors.contains("past the max TTL") {
            Self::LifeIsOver
        } else {
            Self::Nothing
        }
    }
}

/// The kind of fault. Statuses: Vault's "HTTP API" and "sys/health"; those that it does not use are of what stands before
/// it.
///
/// What concerns the host's whole access to Vault parks, for it ends without a change of the object: also a mount that is
/// missing, and a refused login, since the credential may be replaced at any time, and giving up every object would leave them behind then.
fn kind_of(step: Step, cause: Cause) -> FaultKind {
    match (step, cause) {
        (
            _,
            Cause::Connect
            | Cause::Throttled
            | Cause::Timeout
            | Cause::Broken
            | Cause::Unreadable
            | Cause::Redirect,
        ) => FaultKind::SecretstoreUnavailable,
        (Step::Login, Cause::TooLong | Cause::Status(_, _)) => FaultKind::SecretstoreUnavailable,
        (Step::Request, Cause::TooLong) => FaultKind::ResourceGeneric,
        (Step::Request, Cause::Status(status, said)) => match (status, said) {
            (_, Said::Upgrading | Said::NoHandler | Said::NoActiveNode | Said::LifeIsOver) => {
                FaultKind::SecretstoreUnavailable
            }
            (_, Said::CheckAndSet) => FaultKind::ResourceConflict,
            (401 | 403, Said::Nothing) => FaultKind::ResourcePermission,
            (404, Said::Nothing) => FaultKind::ResourceNotFound,
            (405 | 406 | 415, Said::Nothing) => FaultKind::UnsupportedResourceOperation,
            (409, Said::Nothing) => FaultKind::ResourceConflict,
            // 412: this node has not yet seen what another wrote. 429: a quota. 472, 473: a replica that does not
            // serve this. 501: not initialised. 503: sealed. Of success and redirects, those that have no sense here.
            (0..=399 | 408 | 412 | 425 | 429 | 472 | 473 | 500.., Said::Nothing) => {
                FaultKind::SecretstoreUnavailable
            }
            (
                400
                | 402
                | 407
                | 410
                | 411
                | 413
                | 414
                | 416..=424
                | 426..=428
                | 430..=471
                | 474..=499,
                Said::Nothing,
            ) => FaultKind::ResourceGeneric,
        },
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_answer_and_error_has_a_kind() {
        let mut table = String::new();
        let plain = [
            200, 301, 307, 400, 401, 403, 404, 405, 408, 409, 412, 413, 422, 429, 472, 473, 500,
            501, 502, 503, 504,
        ];
        let causes = [
            Cause::Connect,
            Cause::Throttled,
            Cause::Timeout,
            Cause::Broken,
            Cause::TooLong,
            Cause::Unreadable,
            Cause::Redirect,
            Cause::Status(400, Said::CheckAndSet),
            Cause::Status(400, Said::Upgrading),
            Cause::Status(404, Said::NoHandler),
            Cause::Status(500, Said::NoActiveNode),
            Cause::Status(500, Said::LifeIsOver),
        ];
        for cause in plain
            .into_iter()
            .map(|status| Cause::Status(status, Said::Nothing))
            .chain(causes)
        {
            let kind = kind_of(Step::Request, cause);
            table += &format!("{cause:?}: {kind}\n");
            assert_eq!(
                kind_of(Step::Login, cause),
                FaultKind::SecretstoreUnavailable
            );
        }
        expect![[r#"
            Status(200, Nothing): SecretstoreUnavailable
            Status(301, Nothing): SecretstoreUnavailable
            Status(307, Nothing): SecretstoreUnavailable
            Status(400, Nothing): ResourceGeneric
            Status(401, Nothing): ResourcePermission
            Status(403, Nothing): ResourcePermission
            Status(404, Nothing): ResourceNotFound
            Status(405, Nothing): UnsupportedResourceOperation
            Status(408, Nothing): SecretstoreUnavailable
            Status(409, Nothing): ResourceConflict
            Status(412, Nothing): SecretstoreUnavailable
            Status(413, Nothing): ResourceGeneric
            Status(422, Nothing): ResourceGeneric
            Status(429, Nothing): SecretstoreUnavailable
            Status(472, Nothing): SecretstoreUnavailable
            Status(473, Nothing): SecretstoreUnavailable
            Status(500, Nothing): SecretstoreUnavailable
            Status(501, Nothing): SecretstoreUnavailable
            Status(502, Nothing): SecretstoreUnavailable
            Status(503, Nothing): SecretstoreUnavailable
            Status(504, Nothing): SecretstoreUnavailable
            Connect: SecretstoreUnavailable
            Throttled: SecretstoreUnavailable
            Timeout: SecretstoreUnavailable
            Broken: SecretstoreUnavailable
            TooLong: ResourceGeneric
            Unreadable: SecretstoreUnavailable
            Redirect: SecretstoreUnavailable
            Status(400, CheckAndSet): ResourceConflict
            Status(400, Upgrading): SecretstoreUnavailable
            Status(404, NoHandler): SecretstoreUnavailable
            Status(500, NoActiveNode): SecretstoreUnavailable
            Status(500, LifeIsOver): SecretstoreUnavailable
        "#]]
        .assert_eq(&table);
    }
}
