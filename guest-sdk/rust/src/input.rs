//! Reading what a handler got.

use std::slice;

use serde::Deserialize;

use crate::{
    HandlerError, Input, InputBuilder, RequestResult, ResourceObject, ResultEntry, WatchEvent,
    WatchedObject, json,
};

/// Who leaves results and arguments.
const PREVIOUS: &str = "the previous phase";

impl Input {
    /// Starts an input for a test.
    pub fn builder() -> InputBuilder {
        InputBuilder::new()
    }

    /// The object as `T`: a struct of your own with the fields that matter, which may borrow from the input; a type of
    /// `k8s-openapi`; or a [`serde_json::Value`].
    ///
    /// ```
    /// use configurator_sdk::Input;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize)]
    /// struct Pod<'a> {
    ///     #[serde(borrow)]
    ///     metadata: Metadata<'a>,
    /// }
    ///
    /// #[derive(Deserialize)]
    /// struct Metadata<'a> {
    ///     name: &'a str,
    /// }
    ///
    /// let input = Input::builder().object(r#"{"metadata": {"name": "web-1"}}"#).build();
    /// let pod: Pod = input.object()?;
    /// assert_eq!(pod.metadata.name, "web-1");
    /// # Ok::<(), configurator_sdk::HandlerError>(())
    /// ```
    ///
    /// # Errors
    /// Fatal, when the object is not a `T`; the message names the field.
    pub fn object<'a, T: Deserialize<'a>>(&'a self) -> Result<T, HandlerError> {
        json::read(self.object_json(), "the object")
    }

    /// The object's JSON, as it was watched. Of a batch, the first.
    pub fn object_json(&self) -> &str {
        self.objects()
            .first()
            .map_or("null", |watched| &watched.object)
    }

    /// Why the object is in the run. Of a batch, the first.
    pub fn event(&self) -> WatchEvent {
        self.objects()
            .first()
            .map_or(WatchEvent::Modified, |watched| watched.event)
    }

    /// All objects of the run: one, or those of the batch, which is never empty.
    pub fn objects(&self) -> &[WatchedObject] {
        match &self.resource_object {
            ResourceObject::One(object) => slice::from_ref(object),
            ResourceObject::Batch(objects) => objects,
        }
    }

    /// The result of the request of this name.
    ///
    /// # Errors
    /// Fatal, when there is none, or when a group has this key; the message lists the results that there are. A
    /// request that failed with `dropError` has no result: use [`Input::result_opt`] for those.
    pub fn result(&self, request_name: &str) -> Result<&RequestResult, HandlerError> {
        match self.entry(request_name)? {
            ResultEntry::One(result) => Ok(result),
            ResultEntry::Group(_) => Err(HandlerError::fatal(format!(
                "`{request_name}` is a group of results, not the result of one request: read it as a group"
            ))),
        }
    }

    /// The result of the request of this name, or nothing: also when a group has this key.
    pub fn result_opt(&self, request_name: &str) -> Option<&RequestResult> {
        match self.find(request_name)? {
            ResultEntry::One(result) => Some(result),
            ResultEntry::Group(_) => None,
        }
    }

    /// The results of all requests with this `groupBy`, in the order of the requests.
    ///
    /// # Errors
    /// Fatal, when there are none, or when a single request has this name; the message lists the results that there are.
    pub fn group(&self, group_by: &str) -> Result<&[RequestResult], HandlerError> {
        match self.entry(group_by)? {
            ResultEntry::Group(results) => Ok(results),
            ResultEntry::One(_) => Err(HandlerError::fatal(format!(
                "`{group_by}` is the result of one request, not a group: read it as a result"
            ))),
        }
    }

    /// The results of all requests with this `groupBy`; empty where no request had it.
    pub fn group_opt(&self, group_by: &str) -> &[RequestResult] {
        match self.find(group_by) {
            Some(ResultEntry::Group(results)) => results,
            Some(ResultEntry::One(_)) | None => &[],
        }
    }

    /// What the previous phase passed on under this key.
    ///
    /// # Errors
    /// Fatal, when it passed on no such key, or when the value is not a `T`.
    pub fn arg<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Result<T, HandlerError> {
        let Some(text) = self.arg_json(key) else {
            return Err(HandlerError::fatal(missing(
                PREVIOUS,
                "argument",
                key,
                self.pass_through_args.iter().map(|(key, _)| key),
            )));
        };
        json::read(text, &format!("the argument `{key}`"))
    }

    /// The JSON that the previous phase passed on under this key.
    pub fn arg_json(&self, key: &str) -> Option<&str> {
        self.pass_through_args
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.as_str())
    }

    /// In a machine: the result of the request of this name that the entry before asked for. Nothing on the first entry, where the
    /// request was not asked for, and where the host does not remember: then ask again.
    pub fn answer(&self, request_name: &str) -> Option<&RequestResult> {
        match find(&self.last.as_ref()?.request_results, request_name)? {
            ResultEntry::One(result) => Some(result),
            ResultEntry::Group(_) => None,
        }
    }

    /// In a machine: the results of all requests with this `groupBy` that the entry before asked for; empty as
    /// [`answer`](Self::answer) is nothing.
    pub fn answers(&self, group_by: &str) -> &[RequestResult] {
        let results = self.last.as_ref().map(|last| &last.request_results);
        match results.and_then(|results| find(results, group_by)) {
            Some(ResultEntry::Group(results)) => results,
            Some(ResultEntry::One(_)) | None => &[],
        }
    }

    /// In a machine: what this handler has noted with [`Output::data`](crate::Output::data), or nothing.
    ///
    /// # Errors
    /// Fatal, when it is not a `T`.
    pub fn notes<'a, T: Deserialize<'a>>(&'a self) -> Result<Option<T>, HandlerError> {
        let data = self.last.as_ref().and_then(|last| last.data.as_deref());
        data.map(|data| json::read(data, "the notes")).transpose()
    }

    /// In a machine: what the step at this path has left with [`Output::output`](crate::Output::output). The path is that within the
    /// flow; outside a flow it begins with the phase.
    ///
    /// # Errors
    /// Fatal, when the step has left nothing, or when that is not a `T`; the message lists the steps that have.
    pub fn output_of<'a, T: Deserialize<'a>>(&'a self, path: &str) -> Result<T, HandlerError> {
        let known = self.outputs.iter().map(|(path, _)| path);
        match self.outputs.iter().find(|(step, _)| step == path) {
            Some((_, output)) => json::read(output, &format!("the output of `{path}`")),
            None => Err(HandlerError::fatal(missing(
                "earlier steps",
                "output",
                path,
                known,
            ))),
        }
    }

    /// The Configurator's `spec.parameters`, with those of the node laid over; an empty object where it has none.
    ///
    /// # Errors
    /// Fatal, when they are not a `T`.
    pub fn parameters<'a, T: Deserialize<'a>>(&'a self) -> Result<T, HandlerError> {
        json::read(&self.context.parameters, "the parameters")
    }

    fn entry(&self, key: &str) -> Result<&ResultEntry, HandlerError> {
        self.find(key).ok_or_else(|| {
            HandlerError::fatal(missing(
                PREVIOUS,
                "result",
                key,
                self.request_results.iter().map(|(key, _)| key),
            ))
        })
    }

    fn find(&self, key: &str) -> Option<&ResultEntry> {
        find(&self.request_results, key)
    }
}

fn find<'a>(results: &'a [(String, ResultEntry)], key: &str) -> Option<&'a ResultEntry> {
    let found = results.iter().find(|(known, _)| known == key);
    found.map(|(_, entry)| entry)
}

impl WatchedObject {
    /// The object as `T`, as [`Input::object`] reads it.
    ///
    /// # Errors
    /// Fatal, when the object is not a `T`.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, HandlerError> {
        json::read(&self.object, "the object")
    }
}

/// What to say where `who` has left no `what` under this key.
fn missing<'a>(
    who: &str,
    what: &str,
    key: &str,
    known: impl Iterator<Item = &'a String>,
) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    if known.is_empty() {
        format!("no {what} `{key}`: {who} left no {what}s")
    } else {
        format!("no {what} `{key}`: {who} left {}", known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;
    use crate::RequestSink;

    fn input() -> Input {
        Input::builder()
            .object(json!({"metadata": {"name": "web-1"}}))
            .result(RequestResult::answered(
                "node",
                RequestSink::Kubernetes,
                [json!({"kind": "Node"})],
            ))
            .group(
                "pods",
                [RequestResult::answered(
                    "pod-1",
                    RequestSink::Kubernetes,
                    [json!({"n": 1})],
                )],
            )
            .arg("layers", &["node", "namespace"])
            .build()
    }

    fn check<T: std::fmt::Debug>(result: Result<T, HandlerError>, message: Expect) {
        let error = result.unwrap_err();
        assert!(error.fatal, "{error:?}");
        message.assert_eq(&error.message);
    }

    #[test]
    fn results_and_groups_are_found_by_name() {
        let input = input();
        assert_eq!(
            input.result("node").unwrap().object::<Value>().unwrap()["kind"],
            "Node"
        );
        assert_eq!(input.group("pods").unwrap().len(), 1);
        assert_eq!(
            input.arg::<Vec<&str>>("layers").unwrap(),
            ["node", "namespace"]
        );
        assert!(input.result_opt("pods").is_none());
        assert!(input.group_opt("node").is_empty());
    }

    #[test]
    fn what_is_missing_is_named_with_what_is_there() {
        let input = input();
        check(
            input.result("nod"),
            expect!["no result `nod`: the previous phase left node, pods"],
        );
        check(
            input.arg::<Value>("layer"),
            expect!["no argument `layer`: the previous phase left layers"],
        );
        check(
            Input::builder().build().result("node"),
            expect!["no result `node`: the previous phase left no results"],
        );
    }

    #[test]
    fn a_leaf_finds_what_it_asked_for_and_noted() {
        let first = Input::builder().build();
        assert!(first.answer("pod").is_none() && first.answers("pods").is_empty());
        assert_eq!(first.notes::<Value>().unwrap(), None);
        let pod = RequestResult::answered("pod", RequestSink::Kubernetes, [json!({"n": 1})]);
        let input = Input::builder()
            .last(crate::HandlerState {
                data: Some(r#"{"tries":2}"#.to_owned()),
                request_results: vec![
                    ("pod".to_owned(), ResultEntry::One(pod.clone())),
                    ("pods".to_owned(), ResultEntry::Group(vec![pod])),
                ],
                ..crate::HandlerState::default()
            })
            .step_output("prepare", &json!({"size": 3}))
            .build();
        assert_eq!(
            input.answer("pod").unwrap().object::<Value>().unwrap()["n"],
            1
        );
        assert_eq!(input.answers("pods").len(), 1);
        assert_eq!(input.notes::<Value>().unwrap().unwrap()["tries"], 2);
        assert_eq!(input.output_of::<Value>("prepare").unwrap()["size"], 3);
        check(
            input.output_of::<Value>("prepar"),
            expect!["no output `prepar`: earlier steps left prepare"],
        );
    }

    #[test]
    fn a_group_is_not_a_result() {
        let input = input();
        check(
            input.result("pods"),
            expect![
                "`pods` is a group of results, not the result of one request: read it as a group"
            ],
        );
        check(
            input.group("node"),
            expect!["`node` is the result of one request, not a group: read it as a result"],
        );
    }

    #[test]
    fn a_wrong_shape_names_the_field() {
        #[derive(Debug, Deserialize)]
        struct Named {
            #[allow(dead_code, reason = "only its absence matters")]
            name: String,
        }
        check(
            input().object::<Named>(),
            expect![
                "cannot read the object as configurator_sdk::input::tests::a_wrong_shape_names_the_field::Named: missing field `name` at line 1 column 29"
            ],
        );
    }

    #[test]
    fn a_batch_is_a_slice_of_objects() {
        let input = Input::builder()
            .batch([json!(1), json!(2)])
            .event(WatchEvent::Deleted)
            .build();
        assert_eq!(input.event(), WatchEvent::Deleted);
        let numbers: Vec<u8> = input
            .objects()
            .iter()
            .map(|object| object.parse().unwrap())
            .collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(input.object_json(), "1");
    }
}
