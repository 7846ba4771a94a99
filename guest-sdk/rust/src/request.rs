//! Options that every request has.

use std::time::Duration;

use crate::error::milliseconds;
use crate::{ObjectRef, OnError, Operation, Readiness, Request};

impl Request {
    /// A request of this name, with the contract's defaults for everything else.
    ///
    /// ```
    /// use configurator_sdk::Request;
    /// use configurator_sdk::kubernetes::NODE;
    ///
    /// let request = Request::new("node", NODE.get("worker-1")).catch_error();
    /// assert_eq!(request.to_string(), "node: kubernetes get nodes worker-1, on-error catch-error");
    /// ```
    pub fn new(name: impl Into<String>, operation: impl Into<Operation>) -> Request {
        Request {
            request_name: name.into(),
            is_declarative: false,
            group_by: None,
            bootstrap_dep: false,
            of: None,
            on_error: None,
            depends_on: Vec::new(),
            ready_when: None,
            once: false,
            timeout: None,
            partition: None,
            operation: operation.into(),
        }
    }

    /// The phase does not wait for it, and the host retries it by itself until a later one for the same target takes
    /// its place. Only for requests that change something.
    #[must_use]
    pub fn declarative(mut self) -> Request {
        self.is_declarative = true;
        self
    }

    /// The results of all requests with this key arrive together.
    #[must_use]
    pub fn group_by(mut self, key: impl Into<String>) -> Request {
        self.group_by = Some(key.into());
        self
    }

    /// The host is not ready until it has succeeded for every object that existed at start.
    #[must_use]
    pub fn bootstrap_dep(mut self) -> Request {
        self.bootstrap_dep = true;
        self
    }

    /// In a batch, the object that it is for: a failure is charged to it alone.
    #[must_use]
    pub fn of(mut self, object: ObjectRef) -> Request {
        self.of = Some(object);
        self
    }

    /// What becomes of its failure. Default: the phase fails; with `groupBy`, what the output says.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Request {
        self.on_error = Some(on_error);
        self
    }

    /// The next handler gets a failure as a result with `error` set. In the last phase a caught failure fails the run.
    ///
    /// An outage of the Kubernetes API or of a store is not caught: nothing was answered, and the run waits.
    #[must_use]
    pub fn catch_error(self) -> Request {
        self.on_error(OnError::CatchError)
    }

    /// The next handler gets no result of a failure. An outage of the Kubernetes API or of a store is not dropped: the
    /// run waits.
    #[must_use]
    pub fn drop_error(self) -> Request {
        self.on_error(OnError::DropError)
    }

    /// The request of this name must be ready first. Only with [`Output::graph`](crate::Output::graph), and before a deletion.
    #[must_use]
    pub fn depends_on(mut self, request_name: impl Into<String>) -> Request {
        self.depends_on.push(request_name.into());
        self
    }

    /// When those that depend on it may go on. Default: observed. Only where [`depends_on`](Self::depends_on) is allowed, for a request that
    /// reads or writes one Kubernetes object and does not delete it. The Configurator needs a rule for `get`, except with
    /// [`Readiness::Exists`].
    #[must_use]
    pub fn ready_when(mut self, readiness: Readiness) -> Request {
        self.ready_when = Some(readiness);
        self
    }

    /// Never sent a second time, even where the answer was lost. Refused in a chain: make the request one that may
    /// be sent again.
    #[must_use]
    pub fn once(mut self) -> Request {
        self.once = true;
        self
    }

    /// How long one attempt may take. Whole milliseconds, and more than zero. Default: the sink's, which is 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Request {
        self.timeout = Some(milliseconds(timeout));
        self
    }

    /// In the partition of this namespace. Only for the config store and the secret store. A Configurator may name its own namespace only, a
    /// ClusterConfigurator those that a rule names. Default: the Configurator's own partition.
    #[must_use]
    pub fn partition(mut self, namespace: impl Into<String>) -> Request {
        self.partition = Some(namespace.into());
        self
    }
}
