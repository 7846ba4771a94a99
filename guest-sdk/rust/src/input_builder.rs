//! Inputs for tests.

use serde::Serialize;

use crate::{
    Cause, Context, HandlerState, Input, Json, Output, RequestResult, ResourceObject, ResultEntry,
    WatchEvent, WatchedObject,
};

/// Builds an [`Input`] as the host would, so that `cargo test` can call a handler.
///
/// Without further calls: the root phase of `{}`, first entry, first attempt, at the start of 2026.
///
/// ```
/// use configurator_sdk::{Input, RequestResult, RequestSink};
/// use serde_json::json;
///
/// let input = Input::builder()
///     .object(json!({"kind": "Pod"}))
///     .result(RequestResult::answered("node", RequestSink::Kubernetes, [json!({"kind": "Node"})]))
///     .arg("layers", &["node"])
///     .build();
/// assert!(input.result("node").is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct InputBuilder {
    input: Input,
}

impl InputBuilder {
    pub(crate) fn new() -> InputBuilder {
        InputBuilder {
            input: Input {
                resource_object: ResourceObject::One(WatchedObject {
                    object: "{}".to_owned(),
                    event: WatchEvent::Modified,
                }),
                request_results: Vec::new(),
                pass_through_args: Vec::new(),
                last: None,
                outputs: Vec::new(),
                plan: None,
                context: Context {
                    configurator: "test".to_owned(),
                    phase: "root".to_owned(),
                    node: "root".to_owned(),
                    entry: 1,
                    attempt: 1,
                    cause: Cause::Entered,
                    now: "2026-01-01T00:00:00.000Z".to_owned(),
                    seed: 0,
                    parameters: "{}".to_owned(),
                    run_id: "run".to_owned(),
                },
            },
        }
    }

    /// The object that the run is about.
    #[must_use]
    pub fn object(mut self, object: impl Into<Json>) -> InputBuilder {
        self.input.resource_object = ResourceObject::One(watched(object));
        self
    }

    /// The objects of a batch, in place of one object.
    #[must_use]
    pub fn batch<J: Into<Json>>(mut self, objects: impl IntoIterator<Item = J>) -> InputBuilder {
        self.input.resource_object =
            ResourceObject::Batch(objects.into_iter().map(watched).collect());
        self
    }

    /// Why the object, or each of the batch, is in the run. Default: modified. Call it after `object` or `batch`.
    #[must_use]
    pub fn event(mut self, event: WatchEvent) -> InputBuilder {
        match &mut self.input.resource_object {
            ResourceObject::One(object) => object.event = event,
            ResourceObject::Batch(objects) => {
                objects.iter_mut().for_each(|object| object.event = event)
            }
        }
        self
    }

    /// A result of the previous phase, under the name of its request.
    #[must_use]
    pub fn result(mut self, result: RequestResult) -> InputBuilder {
        self.input
            .request_results
            .push((result.request_name.clone(), ResultEntry::One(result)));
        self
    }

    /// Results of the previous phase that share a `groupBy`.
    #[must_use]
    pub fn group(
        mut self,
        group_by: impl Into<String>,
        results: impl IntoIterator<Item = RequestResult>,
    ) -> InputBuilder {
        self.input.request_results.push((
            group_by.into(),
            ResultEntry::Group(results.into_iter().collect()),
        ));
        self
    }

    /// What the previous phase passed on under a key. A value that has no form in JSON is passed on as `null`.
    #[must_use]
    pub fn arg<T: Serialize + ?Sized>(mut self, key: impl Into<String>, value: &T) -> InputBuilder {
        let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        self.input.pass_through_args.push((key.into(), text));
        self
    }

    /// Everything that the output of the previous phase passed on.
    #[must_use]
    pub fn args_of(mut self, previous: &Output) -> InputBuilder {
        self.input
            .pass_through_args
            .extend(previous.pass_through_args.iter().cloned());
        self
    }

    /// The Configurator's `spec.parameters`.
    #[must_use]
    pub fn parameters(mut self, parameters: impl Into<Json>) -> InputBuilder {
        self.input.context.parameters = parameters.into().into_string();
        self
    }

    /// What the previous entry of this handler left behind.
    #[must_use]
    pub fn last(mut self, state: HandlerState) -> InputBuilder {
        self.input.last = Some(state);
        self
    }

    /// What this handler finds when it is entered again after `previous`: its notes, and these answers to what it asked for.
    #[must_use]
    pub fn after(
        mut self,
        previous: &Output,
        answers: impl IntoIterator<Item = RequestResult>,
    ) -> InputBuilder {
        let answers = answers.into_iter();
        let named = answers.map(|answer| (answer.request_name.clone(), ResultEntry::One(answer)));
        self.input.context.entry += 1;
        self.input.context.cause = Cause::Again;
        self.input.last = Some(HandlerState {
            data: previous.data.clone(),
            request_results: named.collect(),
            ..HandlerState::default()
        });
        self
    }

    /// What the step at this path has left. A value that has no form in JSON is `null`.
    #[must_use]
    pub fn step_output<T: Serialize + ?Sized>(
        mut self,
        path: impl Into<String>,
        output: &T,
    ) -> InputBuilder {
        let text = serde_json::to_string(output).unwrap_or_else(|_| "null".to_owned());
        self.input.outputs.push((path.into(), text));
        self
    }

    /// Any other fact about the call.
    ///
    /// ```
    /// # use configurator_sdk::Input;
    /// let input = Input::builder().context(|context| context.attempt = 2).build();
    /// assert_eq!(input.context.attempt, 2);
    /// ```
    #[must_use]
    pub fn context(mut self, change: impl FnOnce(&mut Context)) -> InputBuilder {
        change(&mut self.input.context);
        self
    }

    /// The input.
    pub fn build(self) -> Input {
        self.input
    }
}

/// That of a handler which has begun and neither noted nor asked for anything.
impl Default for HandlerState {
    fn default() -> HandlerState {
        HandlerState {
            start_time: None,
            end_time: None,
            done: false,
            failed: false,
            fatal: false,
            error: None,
            data: None,
            request_results: Vec::new(),
        }
    }
}

fn watched(object: impl Into<Json>) -> WatchedObject {
    WatchedObject {
        object: object.into().into_string(),
        event: WatchEvent::Modified,
    }
}
