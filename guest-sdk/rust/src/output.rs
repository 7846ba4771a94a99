//! Building what a handler returns.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::bindings::configurator::handler::requests::Requests;
use crate::error::milliseconds;
use crate::{
    BatchErrorStrategy, DesiredSet, Event, EventType, ExecuteStrategy, HandlerError, Json,
    ObjectKey, ObjectRef, Outcome, Output, Progress, Request, StatusUpdate, Wake,
};

impl Output {
    /// No requests, nothing passed on, done.
    pub fn new() -> Output {
        Output {
            requests: Requests {
                execute_strategy: None,
                resource_requests: Vec::new(),
                batch_error_strategy: None,
            },
            pass_through_args: Vec::new(),
            outcome: Outcome::Done,
            next: None,
            statuses: Vec::new(),
            data: None,
            events: Vec::new(),
            progress: None,
            output: None,
            details: None,
            desired: None,
            remove_from_plan: Vec::new(),
            reads: Vec::new(),
        }
    }

    /// Adds a request. Names are used once in an output, and no name equals a `groupBy`: the host refuses it otherwise.
    #[must_use]
    pub fn request(mut self, request: Request) -> Output {
        self.push(request);
        self
    }

    /// Adds requests.
    #[must_use]
    pub fn with_requests(mut self, requests: impl IntoIterator<Item = Request>) -> Output {
        self.requests.resource_requests.extend(requests);
        self
    }

    /// Adds a request, inside a loop.
    pub fn push(&mut self, request: Request) {
        self.requests.resource_requests.push(request);
    }

    /// Requests are sent in order, and the first failure that nothing catches stops the rest.
    #[must_use]
    pub fn serial(mut self) -> Output {
        self.requests.execute_strategy = Some(ExecuteStrategy::Serial);
        self
    }

    /// Requests are sent side by side. This is the default.
    #[must_use]
    pub fn parallel(mut self) -> Output {
        self.requests.execute_strategy = Some(ExecuteStrategy::Parallel);
        self
    }

    /// Each request is sent when what it names in [`Request::depends_on`] is ready.
    #[must_use]
    pub fn graph(mut self) -> Output {
        self.requests.execute_strategy = Some(ExecuteStrategy::Graph);
        self
    }

    /// What becomes of failed requests that have a `groupBy` and no `onError`. Default: they are caught.
    #[must_use]
    pub fn batch_error_strategy(mut self, strategy: BatchErrorStrategy) -> Output {
        self.requests.batch_error_strategy = Some(strategy);
        self
    }

    /// Hands `value` to the next phase, which reads it with [`Input::arg`](crate::Input::arg).
    ///
    /// # Errors
    /// Fatal, when the value has no form in JSON.
    pub fn pass<T: Serialize + ?Sized>(
        mut self,
        key: impl Into<String>,
        value: &T,
    ) -> Result<Output, HandlerError> {
        self.pass_through_args
            .push((key.into(), Json::of(value)?.into_string()));
        Ok(self)
    }

    /// Hands a document to the next phase.
    #[must_use]
    pub fn pass_json(mut self, key: impl Into<String>, value: impl Into<Json>) -> Output {
        self.pass_through_args
            .push((key.into(), value.into().into_string()));
        self
    }

    /// Merges `status` into the object's status by server-side apply, at the end of the run. It counts once the
    /// requests of this phase have gone through.
    #[must_use]
    pub fn status(mut self, status: impl Into<Json>) -> Output {
        self.statuses.push(StatusUpdate {
            of: None,
            status: status.into().into_string(),
        });
        self
    }

    /// Merges `status` into the status of one object of the batch. There, each status must name its object.
    #[must_use]
    pub fn status_of(mut self, of: ObjectRef, status: impl Into<Json>) -> Output {
        self.statuses.push(StatusUpdate {
            of: Some(of),
            status: status.into().into_string(),
        });
        self
    }

    /// A Kubernetes Event about the object, published once the requests of this phase have gone through. In a batch,
    /// each Event must name its object: see [`Output::event_of`].
    #[must_use]
    pub fn event(
        mut self,
        event_type: EventType,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Output {
        self.events.push(Event {
            of: None,
            event_type,
            reason: reason.into(),
            message: message.into(),
        });
        self
    }

    /// A Kubernetes Event about one object of the batch.
    #[must_use]
    pub fn event_of(
        mut self,
        of: ObjectRef,
        event_type: EventType,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Output {
        self.events.push(Event {
            of: Some(of),
            event_type,
            reason: reason.into(),
            message: message.into(),
        });
        self
    }

    /// The handler's own notes, which come back in `last` when it is entered again. Unread in a chain.
    #[must_use]
    pub fn data(mut self, data: impl Into<Json>) -> Output {
        self.data = Some(data.into().into_string());
        self
    }

    /// For later steps of the same flow. Unread in a chain.
    #[must_use]
    pub fn output(mut self, output: impl Into<Json>) -> Output {
        self.output = Some(output.into().into_string());
        self
    }

    /// What a person sees under the view `ObjectDetail`. Unread in a chain.
    #[must_use]
    pub fn details(mut self, details: impl Into<Json>) -> Output {
        self.details = Some(details.into().into_string());
        self
    }

    /// How far the handler is. More than 100 percent is 100. Unread in a chain.
    #[must_use]
    pub fn progress(mut self, percent: u8, message: impl Into<String>) -> Output {
        self.progress = Some(Progress {
            percent: percent.min(100),
            message: message.into(),
        });
        self
    }

    /// Enter this handler again with the requests' results: at once. Refused in a chain, where the next phase gets
    /// the results.
    #[must_use]
    pub fn again(mut self) -> Output {
        self.outcome = Outcome::Again(None);
        self
    }

    /// Enter this handler again with the requests' results, after this long. Refused in a chain, where
    /// [`HandlerError::retry`] with [`after`](HandlerError::after) begins the run again.
    #[must_use]
    pub fn again_after(mut self, delay: Duration) -> Output {
        self.outcome = Outcome::Again(Some(milliseconds(delay)));
        self
    }

    /// Leave memory; enter this handler again at the first of these. Refused in a chain.
    ///
    /// ```
    /// use configurator_sdk::{Output, Wake};
    /// use std::time::Duration;
    ///
    /// let output = Output::new().wait(Wake::new().after(Duration::from_secs(60)).signal("go"));
    /// # assert!(matches!(output.outcome, configurator_sdk::Outcome::Wait(wake) if wake.after == Some(60_000)));
    /// ```
    #[must_use]
    pub fn wait(mut self, wake: Wake) -> Output {
        self.outcome = Outcome::Wait(wake);
        self
    }

    /// Fail, but keep statuses, events, data and progress. Requests and reads are dropped: the contract allows none here. In mode
    /// Chain this is an error of the handler whose statuses and events are published all the same.
    #[must_use]
    pub fn failed(mut self, error: HandlerError) -> Output {
        self.requests.resource_requests.clear();
        self.reads.clear();
        self.outcome = Outcome::Failed(error);
        self
    }

    /// In a pipeline: the handlers after this one are not called. Refused in a chain.
    #[must_use]
    pub fn stop(mut self) -> Output {
        self.outcome = Outcome::Stop;
        self
    }

    /// Go to this phase, whatever the transitions say. Refused in a chain, where the phases follow one another.
    #[must_use]
    pub fn next_phase(mut self, phase: impl Into<String>) -> Output {
        self.next = Some(phase.into());
        self
    }

    /// All that the owner is to have; the host deletes what is missing here. In a pipeline, its entries join the plan.
    #[must_use]
    pub fn desired(mut self, desired: DesiredSet) -> Output {
        self.desired = Some(desired);
        self
    }

    /// In a pipeline: the plan loses the request or entry of this name.
    #[must_use]
    pub fn remove_from_plan(mut self, name: impl Into<String>) -> Output {
        self.remove_from_plan.push(name.into());
        self
    }

    /// In a pipeline: adds a request that only reads, and enters this handler again with its result, by [`Input::answer`](crate::Input::answer).
    #[must_use]
    pub fn read(mut self, request: Request) -> Output {
        self.reads.push(request);
        self.again()
    }
}

impl Default for Output {
    fn default() -> Output {
        Output::new()
    }
}

/// One line a request, then the set, then one line for each argument: made for golden tests. Not a stable format.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for request in &self.requests.resource_requests {
            writeln!(f, "{request}")?;
        }
        for request in &self.reads {
            writeln!(f, "read {request}")?;
        }
        if let Some(desired) = &self.desired {
            desired.fmt(f)?;
        }
        for name in &self.remove_from_plan {
            writeln!(f, "remove-from-plan {name}")?;
        }
        for (key, value) in &self.pass_through_args {
            writeln!(f, "pass {key} = {value}")?;
        }
        Ok(())
    }
}

impl Wake {
    /// At nothing, until something is added.
    pub fn new() -> Wake {
        Wake {
            after: None,
            signals: Vec::new(),
            objects: Vec::new(),
        }
    }

    /// After this long; at once for none.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Wake {
        self.after = Some(milliseconds(delay));
        self
    }

    /// At a signal of this name.
    #[must_use]
    pub fn signal(mut self, name: impl Into<String>) -> Wake {
        self.signals.push(name.into());
        self
    }

    /// When this object changes.
    #[must_use]
    pub fn object(mut self, key: ObjectKey) -> Wake {
        self.objects.push(key);
        self
    }
}

impl Default for Wake {
    fn default() -> Wake {
        Wake::new()
    }
}

impl ObjectRef {
    /// The object of this name; the namespace is empty for one without.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> ObjectRef {
        ObjectRef {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configstore;

    #[test]
    fn a_failed_output_keeps_everything_but_its_requests() {
        let output = Output::new()
            .request(Request::new("a", configstore::Basic::new("k").get()))
            .progress(250, "half")
            .failed(HandlerError::retry("not yet"));
        assert!(output.requests.resource_requests.is_empty());
        assert_eq!(
            output.progress,
            Some(Progress {
                percent: 100,
                message: "half".to_owned()
            })
        );
    }

    #[test]
    fn an_event_of_a_batch_names_its_object() {
        let of = ObjectRef::new("shop", "web");
        let output = Output::new()
            .event(EventType::Normal, "Seen", "it was seen")
            .event_of(of.clone(), EventType::Warning, "Gone", "it is gone");
        let named: Vec<_> = output.events.into_iter().map(|event| event.of).collect();
        assert_eq!(named, [None, Some(of)]);
    }

    #[test]
    fn a_handler_waits_for_the_first_of_several() {
        let key = crate::kubernetes::POD.key(("shop", "web"));
        let wake = Wake::new()
            .after(Duration::ZERO)
            .signal("go")
            .signal("stop")
            .object(key.clone());
        assert_eq!(
            wake,
            Wake {
                after: Some(0),
                signals: vec!["go".to_owned(), "stop".to_owned()],
                objects: vec![key],
            }
        );
        assert_eq!(Wake::default().after, None);
    }

    #[test]
    fn what_has_no_form_in_json_is_an_error() {
        let map = std::collections::BTreeMap::from([((1, 2), 3)]);
        let error = Output::new().pass("map", &map).unwrap_err();
        assert!(
            error.fatal && error.message.starts_with("cannot write "),
            "{error}"
        );
    }

    #[test]
    fn the_defaults_are_left_to_the_host() {
        let output = Output::new();
        assert_eq!(output.requests.execute_strategy, None);
        assert_eq!(output.requests.batch_error_strategy, None);
        assert_eq!(output.outcome, Outcome::Done);
        assert_eq!(
            Output::new().serial().requests.execute_strategy,
            Some(ExecuteStrategy::Serial)
        );
        assert_eq!(
            Output::new()
                .again_after(Duration::from_millis(1500))
                .outcome,
            Outcome::Again(Some(1500))
        );
    }
}
