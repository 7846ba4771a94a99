//! A recording under way: what is secret in it is known only at its end.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use configurator_core::document::Document;
use configurator_core::handler::{CallFault, HandlerInput, HandlerOutput};
use configurator_core::result::RequestResult;

use super::parts::{self, Part};
use super::recorder::Recorder;
use super::stand_in::{Replacer, StandIns, Unreplaced};
use super::{RecordedCall, Recording, kept};

/// Calls as they were made, each with its module, secrets included. They are kept in memory until the run ends: what a call has seen may turn out later
/// to be secret.
pub(crate) struct Taking<M> {
    recorder: Arc<Recorder>,
    stand_ins: StandIns,
    recording: Recording,
    calls: Vec<MadeCall<M>>,
}

struct MadeCall<M> {
    handler: String,
    module: M,
    input: Arc<HandlerInput>,
    result: Result<HandlerOutput, CallFault>,
    results: Vec<RequestResult>,
}

impl<M: Clone + Send + 'static> Taking<M> {
    pub(super) fn new(recorder: Arc<Recorder>, key: [u8; 32], recording: Recording) -> Self {
        Self {
            recorder,
            stand_ins: StandIns::new(key),
            recording,
            calls: Vec::new(),
        }
    }

    /// What the secret store has answered before.
    pub(crate) fn learn<'a>(&mut self, answers: impl IntoIterator<Item = &'a Document>) {
        self.stand_ins.learn_answers(answers);
    }

    /// A call that was made.
    pub(crate) fn call(
        &mut self,
        handler: &str,
        module: &M,
        input: &Arc<HandlerInput>,
        result: &Result<HandlerOutput, CallFault>,
    ) {
        self.calls.push(MadeCall {
            handler: handler.to_owned(),
            module: module.clone(),
            input: input.clone(),
            result: result.clone(),
            results: Vec::new(),
        });
    }

    /// What became of the requests of the last call.
    pub(crate) fn results(&mut self, results: &[RequestResult]) {
        if let Some(call) = self.calls.last_mut() {
            call.results = results.to_vec();
        }
    }

    /// The recording, with stand-ins in the place of everything secret. A run that called no handler is none worth keeping, and one with a
    /// secret that cannot be replaced is not kept.
    pub(crate) async fn end(self, end: &str) -> Option<Ended<M>> {
        if self.calls.is_empty() {
            return None;
        }
        let (configurator, run) = (
            self.recording.configurator.clone(),
            self.recording.run.clone(),
        );
        let end = end.to_owned();
        // Documents are read and written.
        let cleaned = tokio::task::spawn_blocking(move || self.clean(end));
        match cleaned.await.unwrap_or(Err(Unreplaced)) {
            Ok(ended) => Some(ended),
            Err(error) => {
                tracing::warn!(%configurator, run, "a run is not recorded: {error}");
                None
            }
        }
    }

    fn clean(mut self, end: String) -> Result<Ended<M>, Unreplaced> {
        let mut inputs = Vec::new();
        for call in &mut self.calls {
            let mut input = HandlerInput::clone(&call.input);
            let output = call.result.as_mut();
            let parts = parts::of_input(&mut input)
                .into_iter()
                .chain(parts::of_results(&mut call.results))
                .chain(output.map(parts::of_output).unwrap_or_default());
            parts.for_each(|part| self.stand_ins.learn(&part));
            inputs.push(input);
        }
        let replacer = self.stand_ins.ready()?;
        let mut waiting = VecDeque::new();
        let mut recording = self.recording;
        for (number, (mut call, mut input)) in self.calls.into_iter().zip(inputs).enumerate() {
            for part in parts::of_input(&mut input) {
                replacer.replace(part)?;
            }
            for part in parts::of_results(&mut call.results) {
                replacer.replace(part)?;
            }
            let has_stand_ins = input != *call.input || is_in_result(&replacer, &mut call.result);
            let result = match has_stand_ins {
                false => kept(call.result),
                true => {
                    // A value that the handler has made of chance is not made again.
                    input.context.seed = replacer.seed(input.context.seed);
                    waiting.push_back((number, call.module));
                    Err(CallFault::Host {
                        message: "it was not made again".into(),
                    })
                }
            };
            recording.calls.push(RecordedCall {
                handler: call.handler,
                input,
                result,
                results: call.results,
                has_stand_ins,
            });
        }
        recording.end = end;
        Ok(Ended {
            recorder: self.recorder,
            replacer,
            recording,
            waiting,
        })
    }
}

/// Whether a secret is in what a handler has returned.
fn is_in_result(replacer: &Replacer, result: &mut Result<HandlerOutput, CallFault>) -> bool {
    if let Ok(output) = result {
        let mut parts = parts::of_output(output).into_iter();
        // JSON has those that are no text as numbers.
        if parts.any(|part| matches!(part, Part::Body(body) if replacer.is_in(&body))) {
            return true;
        }
    }
    serde_json::to_value(result).map_or(true, |value| replacer.is_in_value(&value))
}

/// A recording that has ended. Calls that had to do with secrets are to be made once more, with stand-ins in their places: what they give then is kept,
/// and is as good a call as any other. Nothing of it depends on the secrets.
pub(crate) struct Ended<M> {
    recorder: Arc<Recorder>,
    replacer: Replacer,
    recording: Recording,
    waiting: VecDeque<(usize, M)>,
}

/// A call that is to be made once more.
pub(crate) struct Again<M> {
    pub(crate) number: usize,
    pub(crate) handler: String,
    pub(crate) module: M,
    pub(crate) input: Arc<HandlerInput>,
}

impl<M: Send + 'static> Ended<M> {
    /// The next call that is to be made once more.
    pub(crate) fn next_call(&mut self) -> Option<Again<M>> {
        let (number, module) = self.waiting.pop_front()?;
        let call = self.recording.calls.get(number)?;
        Some(Again {
            number,
            handler: call.handler.clone(),
            module,
            input: Arc::new(call.input.clone()),
        })
    }

    /// What it has given.
    pub(crate) fn made(&mut self, number: usize, result: Result<HandlerOutput, CallFault>) {
        if let Some(call) = self.recording.calls.get_mut(number) {
            call.result = kept(result);
        }
    }

    /// Writes it.
    pub(crate) async fn keep(self) {
        let written = tokio::task::spawn_blocking(move || {
            let Self {
                recorder,
                replacer,
                mut recording,
                waiting: _,
            } = self;
            if has_secret_names(&replacer, &mut recording.calls) {
                let Recording {
                    configurator, run, ..
                } = &recording;
                tracing::warn!(%configurator, run, "a run is not recorded: {Unreplaced}");
                return;
            }
            recorder.keep(&recording);
        });
        let _ = written.await;
    }
}

/// Whether a module has given a name with a secret in it. Names are kept as they are, since handlers find results by them; one that
/// a call with stand-ins gives as well is no secret.
fn has_secret_names(replacer: &Replacer, calls: &mut [RecordedCall]) -> bool {
    let mut known = BTreeSet::new();
    for call in &mut *calls {
        if let Ok(output) = &mut call.result {
            let names = output
                .pass_through_args
                .iter()
                .map(|(name, _)| name.clone());
            known.extend(names);
            let parts = parts::of_output(output);
            known.extend(parts.into_iter().filter_map(name_of).map(str::to_owned));
        }
    }
    calls.iter_mut().any(|call| {
        let parts = parts::of_input(&mut call.input).into_iter();
        let mut names = parts
            .chain(parts::of_results(&mut call.results))
            .filter_map(name_of);
        names.any(|name| replacer.is_in(name) && !known.contains(name))
    })
}

const fn name_of(part: Part<'_>) -> Option<&str> {
    match part {
        Part::Name(name) => Some(name),
        Part::Document(_)
        | Part::Answer(_)
        | Part::Secret(_)
        | Part::KubernetesSecret(_)
        | Part::Text(_)
        | Part::Body(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use configurator_core::handler::{
        CallLimits, Cause, Context, Outcome, ResourceObject, WatchEvent, WatchedObject,
    };
    use configurator_core::request::{
        HttpRequest, ObjectRef, Operation, Request, SecretRequest, SecretVerb, SinkName,
    };
    use configurator_core::result::{HttpResponse, ResultEntry};
    use configurator_core::time::Timestamp;
    use serde_json::{Value, json};

    use super::super::{DEFAULT_RECORDINGS, VERSION};
    use super::*;

    const SECRET: &str = "hunter22-and-more";

    type Handler = fn(&HandlerInput) -> HandlerOutput;

    fn taking(folder: &std::path::Path) -> Taking<Handler> {
        let recorder = Recorder::new(folder, DEFAULT_RECORDINGS).unwrap();
        let recording = Recording {
            version: VERSION,
            configurator: ObjectRef::cluster_scoped("taken"),
            run: "r-1".into(),
            time: Timestamp::default(),
            module: String::new(),
            limits: CallLimits::default(),
            objects: Vec::new(),
            calls: Vec::new(),
            end: String::new(),
        };
        Taking::new(Arc::new(recorder), [7; 32], recording)
    }

    fn document(value: &Value) -> Document {
        Document::of(value).unwrap()
    }

    fn input(object: &Value) -> HandlerInput {
        HandlerInput {
            resource_object: ResourceObject::One(WatchedObject {
                object: document(object),
                event: WatchEvent::Added,
            }),
            request_results: Vec::new(),
            pass_through_args: Vec::new(),
            last: None,
            outputs: Vec::new(),
            plan: None,
            context: Context {
                configurator: "taken".into(),
                phase: "root".into(),
                node: "root".into(),
                entry: 1,
                attempt: 1,
                cause: Cause::Entered,
                now: Timestamp::default(),
                seed: 77,
                parameters: Document::empty_object(),
                run_id: "r-1".into(),
            },
        }
    }

    fn result(sink: SinkName, answer: &Value) -> RequestResult {
        RequestResult {
            request_name: "asked".into(),
            sink,
            is_declarative: false,
            query_objects: vec![document(answer)],
            created: Timestamp::default(),
            finished: None,
            error: None,
            http_response: None,
        }
    }

    /// Makes a call, as a host does.
    fn call(
        taking: &mut Taking<Handler>,
        handler: Handler,
        input: &HandlerInput,
        results: &[RequestResult],
    ) {
        let output = Ok(handler(input));
        taking.call("root", &handler, &Arc::new(input.clone()), &output);
        taking.results(results);
    }

    /// What is kept in the end.
    fn kept_of(taking: Taking<Handler>) -> Recording {
        let mut ended = taking.clean("succeeded".into()).ok().unwrap();
        while let Some(again) = ended.next_call() {
            ended.made(again.number, Ok((again.module)(&again.input)));
        }
        for call in &ended.recording.calls {
            assert!(!matches!(call.result, Err(CallFault::Host { .. })));
        }
        ended.recording
    }

    fn text_of(recording: &Recording) -> String {
        serde_json::to_string(recording).unwrap()
    }

    /// Passes on what it was given.
    fn passes(input: &HandlerInput) -> HandlerOutput {
        let ResourceObject::One(watched) = &input.resource_object else {
            return HandlerOutput::default();
        };
        let results = serde_json::to_value(&input.request_results).unwrap();
        HandlerOutput {
            pass_through_args: vec![
                ("object".into(), watched.object.clone()),
                ("results".into(), document(&results)),
            ],
            ..HandlerOutput::default()
        }
    }

    /// Puts what HTTP has answered into the secret store.
    fn stores(input: &HandlerInput) -> HandlerOutput {
        let mut output = passes(input);
        let answer = input
            .request_results
            .iter()
            .find_map(|(_, entry)| match entry {
                ResultEntry::One(result) => result.http_response.as_ref(),
                ResultEntry::Group(_) => None,
            });
        let token = String::from_utf8(answer.unwrap().body.clone()).unwrap();
        let create = SecretRequest {
            name: "token".into(),
            verb: SecretVerb::Create,
            value: Some(document(&json!({"token": token}))),
            version: None,
            partition: None,
        };
        let tell = HttpRequest {
            method: "POST".into(),
            url: format!("https://api.example/?token={token}"),
            headers: vec![("authorization".into(), token.clone())],
            body: Some(format!("token={token}").into_bytes()),
        };
        output.requests.resource_requests = vec![
            Request::new("create", Operation::Secret(create)),
            Request::new("tell", Operation::Http(tell)),
        ];
        output
    }

    /// Makes a secret of chance.
    fn draws(input: &HandlerInput) -> HandlerOutput {
        let value = document(&format!("drawn-{}", input.context.seed).into());
        let create = SecretRequest {
            name: "drawn".into(),
            verb: SecretVerb::Create,
            value: Some(value.clone()),
            version: None,
            partition: None,
        };
        let mut output = HandlerOutput {
            pass_through_args: vec![("drawn".into(), value)],
            ..HandlerOutput::default()
        };
        let create = Request::new("create", Operation::Secret(create));
        output.requests.resource_requests.push(create);
        output
    }

    #[test]
    fn what_turns_out_to_be_secret_is_replaced_in_calls_before() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut taking = taking(folder.path());
        let holder = json!({"kind": "ConfigMap", "data": {"copy": SECRET}});
        let read = result(SinkName::Kubernetes, &holder);
        call(
            &mut taking,
            passes,
            &input(&holder),
            std::slice::from_ref(&read),
        );
        let answer = json!({"name": "login", "version": 1, "value": {"password": SECRET}});
        let mut second = input(&holder);
        second.request_results = vec![("asked".into(), ResultEntry::One(read))];
        let answer = result(SinkName::Secretstore, &answer);
        call(&mut taking, passes, &second, &[answer]);
        let recording = kept_of(taking);
        let text = text_of(&recording);
        assert!(!text.contains(SECRET), "{text}");
        assert!(recording.calls.iter().all(|call| call.has_stand_ins));
        // The same stands for it everywhere, and each call gives what is kept for what is kept.
        let copy = |document: &Document| document.to_value().pointer("/data/copy").cloned();
        let first = recording.calls[0].result.as_ref().unwrap();
        let seen = copy(&first.pass_through_args[0].1);
        assert!(seen.is_some());
        assert_eq!(seen, copy(&recording.calls[0].results[0].query_objects[0]));
        for call in &recording.calls {
            assert_eq!(call.result, Ok(passes(&call.input)));
        }
    }

    #[test]
    fn what_a_handler_puts_into_the_secret_store_is_secret_everywhere() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut taking = taking(folder.path());
        let object = json!({"kind": "ConfigMap"});
        let told = RequestResult {
            query_objects: Vec::new(),
            http_response: Some(HttpResponse {
                status: 200,
                headers: vec![("x-token".into(), SECRET.into())],
                body: SECRET.into(),
            }),
            ..result(SinkName::Http, &Value::Null)
        };
        call(
            &mut taking,
            passes,
            &input(&object),
            std::slice::from_ref(&told),
        );
        let mut second = input(&object);
        second.request_results = vec![("asked".into(), ResultEntry::One(told))];
        call(&mut taking, stores, &second, &[]);
        let mut third = input(&object);
        third.pass_through_args = vec![("token".into(), document(&SECRET.into()))];
        call(&mut taking, passes, &third, &[]);
        let recording = kept_of(taking);
        let text = text_of(&recording);
        assert!(!text.contains(SECRET), "{text}");
        let made = recording.calls[1].result.as_ref().unwrap();
        assert_eq!(made.requests.resource_requests.len(), 2);
    }

    #[test]
    fn what_a_handler_has_made_of_chance_is_made_of_another() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut taking = taking(folder.path());
        let first = input(&json!({"kind": "ConfigMap"}));
        call(&mut taking, draws, &first, &[]);
        let recording = kept_of(taking);
        let text = text_of(&recording);
        assert!(!text.contains("drawn-77"), "{text}");
        let [kept_call] = recording.calls.as_slice() else {
            panic!("there is one call")
        };
        assert_eq!(kept_call.result, kept(Ok(draws(&kept_call.input))));
    }

    #[test]
    fn base64_names_of_fields_numbers_and_arguments_have_no_secret() {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;

        let folder = tempfile::TempDir::new().unwrap();
        let mut taking = taking(folder.path());
        taking.learn([&document(
            &json!({"name": "login", "value": {"password": SECRET, "pin": 123_456_789}}),
        )]);
        let coded = STANDARD.encode(SECRET);
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made"}, "type": "Opaque",
            "data": {"password": coded, "short": STANDARD.encode("4711")},
            SECRET: 123_456_789,
        });
        let mut first = input(&object);
        first.pass_through_args = vec![("arg".into(), document(&json!([SECRET, coded])))];
        first.context.parameters = document(&json!({"password": SECRET}));
        let body = RequestResult {
            http_response: Some(HttpResponse {
                status: 200,
                headers: Vec::new(),
                body: [b"\xff\xfe".as_slice(), SECRET.as_bytes()].concat(),
            }),
            ..result(SinkName::Http, &object)
        };
        first.request_results = vec![("asked".into(), ResultEntry::One(body.clone()))];
        call(&mut taking, passes, &first, &[body]);
        let recording = kept_of(taking);
        let text = text_of(&recording);
        let numbers = serde_json::to_string(SECRET.as_bytes()).unwrap();
        let numbers = numbers.trim_matches(['[', ']']);
        let short = STANDARD.encode("4711");
        for secret in [SECRET, coded.as_str(), "123456789", short.as_str(), numbers] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }

    /// Words of the recording's own form are no place for a secret.
    #[test]
    fn a_secret_that_is_a_word_of_the_form_spoils_nothing() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut taking = taking(folder.path());
        let user = json!({"name": "login", "value": {"username": "kubernetes"}});
        taking.learn([&document(&user)]);
        let asked = result(SinkName::Kubernetes, &json!({"owner": "kubernetes"}));
        let mut first = input(&json!({"kind": "ConfigMap"}));
        first.request_results = vec![("asked".into(), ResultEntry::One(asked.clone()))];
        call(&mut taking, passes, &first, &[asked]);
        let recording = kept_of(taking);
        let [kept_call] = recording.calls.as_slice() else {
            panic!("there is one call")
        };
        assert_eq!(kept_call.results[0].sink, SinkName::Kubernetes);
        assert!(
            !kept_call.results[0].query_objects[0]
                .as_str()
                .contains("kubernetes")
        );
        assert!(kept_call.has_stand_ins);
    }

    #[tokio::test]
    async fn a_run_with_a_name_that_holds_a_secret_is_not_recorded() {
        for (name, is_recorded) in [(SECRET, false), ("arg", true)] {
            let folder = tempfile::TempDir::new().unwrap();
            let mut taking = taking(folder.path());
            let login = json!({"name": "login", "value": SECRET});
            taking.learn([&document(&login)]);
            let mut first = input(&json!({"kind": "ConfigMap"}));
            first.pass_through_args = vec![(name.into(), Document::null())];
            call(&mut taking, passes, &first, &[]);
            let mut ended = taking.end("succeeded").await.unwrap();
            while let Some(again) = ended.next_call() {
                ended.made(again.number, Ok((again.module)(&again.input)));
            }
            ended.keep().await;
            assert_eq!(folder.path().join("taken").exists(), is_recorded, "{name}");
        }
    }

    #[test]
    fn a_call_without_secrets_is_kept_as_it_was() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut taking = taking(folder.path());
        let first = input(&json!({"b": 1.50, "a": "{\"x\": 1}"}));
        call(&mut taking, passes, &first, &[]);
        let recording = kept_of(taking);
        let [kept_call] = recording.calls.as_slice() else {
            panic!("there is one call")
        };
        assert_eq!(kept_call.input, first);
        assert!(!kept_call.has_stand_ins);
        assert_eq!(kept_call.result.as_ref().unwrap().outcome, Outcome::Done);
    }
}
