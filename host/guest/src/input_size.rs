//! How large an input is, before it is handed to a guest.

use configurator_core::desired::{Content, DesiredEntry, PipelinePlan};
use configurator_core::document::Document;
use configurator_core::handler::{Cause, HandlerInput, ResourceObject};
use configurator_core::request::{ConfigOperation, Operation, Request};
use configurator_core::result::{RequestResult, ResultEntry};

/// The bytes of all documents, bodies and texts that can be large.
pub(crate) fn input_size(input: &HandlerInput) -> u64 {
    let objects = match &input.resource_object {
        ResourceObject::One(object) => object.object.size(),
        ResourceObject::Batch(objects) => objects.iter().map(|object| object.object.size()).sum(),
    };
    let last = input.last.as_ref().map_or(0, |last| {
        optional(last.data.as_ref()) + results(&last.request_results)
    });
    let plan = input.plan.as_ref().map_or(0, plan_size);
    let signal = match &input.context.cause {
        Cause::Signal(signal) => signal.name.len() + optional(signal.data.as_ref()),
        Cause::Changed(_)
        | Cause::Entered
        | Cause::Retry
        | Cause::Again
        | Cause::Timer
        | Cause::Recovered => 0,
    };
    let size = objects
        + results(&input.request_results)
        + named(&input.pass_through_args)
        + named(&input.outputs)
        + input.context.parameters.size()
        + last
        + plan
        + signal;
    size as u64
}

fn results(entries: &[(String, ResultEntry)]) -> usize {
    let size = |entry: &ResultEntry| match entry {
        ResultEntry::One(one) => result(one),
        ResultEntry::Group(group) => group.iter().map(result).sum(),
    };
    entries
        .iter()
        .map(|(name, entry)| name.len() + size(entry))
        .sum()
}

fn result(result: &RequestResult) -> usize {
    let documents: usize = result.query_objects.iter().map(Document::size).sum();
    let error = result.error.as_ref().map_or(0, |error| error.message.len());
    let response = result
        .http_response
        .as_ref()
        .map_or(0, |response| response.body.len() + pairs(&response.headers));
    result.request_name.len() + documents + error + response
}

fn plan_size(plan: &PipelinePlan) -> usize {
    let requests: usize = plan.requests.resource_requests.iter().map(request).sum();
    let set = plan.desired.as_ref().map_or(0, |set| {
        let entries: usize = set.entries.iter().map(entry).sum();
        let pre_terminate: usize = set.pre_terminate.iter().map(request).sum();
        entries + pre_terminate
    });
    requests + set
}

fn entry(entry: &DesiredEntry) -> usize {
    let content = match &entry.content {
        Content::Kubernetes(object) => object.size(),
        Content::Config(config) => config.write.value().map_or(0, str::len),
        Content::Secret(secret) => optional(secret.value.as_ref()),
    };
    entry.name.len() + content
}

fn request(request: &Request) -> usize {
    let operation = match &request.operation {
        Operation::Kubernetes(request) => optional(request.body.as_ref()),
        Operation::Config(request) => request
            .operations
            .iter()
            .filter_map(ConfigOperation::value)
            .map(str::len)
            .sum(),
        Operation::Secret(request) => optional(request.value.as_ref()),
        Operation::Http(request) => {
            request.url.len() + pairs(&request.headers) + request.body.as_ref().map_or(0, Vec::len)
        }
        Operation::Extension(request) => {
            request.extension.len()
                + request.verb.len()
                + request.target.len()
                + optional(request.body.as_ref())
        }
    };
    request.name.len() + operation
}

fn named(documents: &[(String, Document)]) -> usize {
    documents
        .iter()
        .map(|(name, document)| name.len() + document.size())
        .sum()
}

fn pairs(pairs: &[(String, String)]) -> usize {
    pairs
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum()
}

fn optional(document: Option<&Document>) -> usize {
    document.map_or(0, Document::size)
}
