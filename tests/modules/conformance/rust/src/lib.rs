//! What every SDK must be able to say and read: the reference of the modules beside it.
//!
//! Each handler is plain enough to be written alike in every language; the table is in the folder's README.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "an index of a JSON value does not panic, and one handler is to"
)]

mod batch;
mod documents;
mod kubernetes;
mod outcomes;
mod reading;
mod requests;
mod sets;
mod stores;

use configurator_sdk::{Accepts, Handler, HandlerError, Input, View};
use serde_json::Value;

configurator_sdk::module! {
    handlers: [
        Handler::new("kubernetes-reads", kubernetes::reads).description("Gets and lists."),
        Handler::new("kubernetes-writes", kubernetes::writes).description("Creates, replaces and applies."),
        Handler::new("kubernetes-patches", kubernetes::patches).description("Patches of every type."),
        Handler::new("kubernetes-deletes", kubernetes::deletes).description("Deletes of every policy."),
        Handler::new("kubernetes-types", kubernetes::types).description("Every type that the SDK names."),
        Handler::new("config-entries", stores::entries).description("Entries of every type."),
        Handler::new("config-app-conf", stores::app_conf).description("Application configuration."),
        Handler::new("config-basic", stores::basic).description("Plain keys."),
        Handler::new("config-two-layers", stores::two_layers).description("Leaves under two levels."),
        Handler::new("config-transaction", stores::transaction).description("All or nothing."),
        Handler::new("secrets", stores::secrets)
            .description("Secrets.")
            .capabilities(r#"{"secretstore":[{"names":["*"],"verbs":["get","create","update","delete"]}]}"#),
        Handler::new("http", requests::http).description("HTTP endpoints."),
        Handler::new("options", requests::options).description("What every request can have."),
        Handler::new("strategy", requests::strategy).description("Orders of execution."),
        Handler::new("graph", requests::graph).description("Requests that depend on one another."),
        Handler::new("object", documents::object).description("Hands the object on, read and untouched."),
        Handler::new("numbers", documents::numbers).description("Reads numbers."),
        Handler::new("unicode", documents::unicode).description("Texts of all kinds."),
        Handler::new("deep", documents::deep).description("A deep document."),
        Handler::new("large", documents::large).description("A large document."),
        Handler::new("results", reading::results).description("Reads results."),
        Handler::new("groups", reading::groups).description("Reads groups of results."),
        Handler::new("reads", reading::reads).accepts(Accepts::Either).description("Reads in one of several ways."),
        Handler::new("nested-json", documents::nested_json).description("Puts a document into another."),
        Handler::new("arguments", reading::arguments).description("Reads and hands on arguments."),
        Handler::new("context", reading::context).description("Reads the facts of the call."),
        Handler::new("state", reading::state).description("Reads what it left behind.").view(View::CheckList),
        Handler::new("statuses", outcomes::statuses).description("Statuses and Events."),
        Handler::new("error", outcomes::error).description("Errors of all kinds.").parameters_schema(r#"{"type":"object"}"#),
        Handler::new("panic", outcomes::panic).description("Fails as no handler should."),
        Handler::new("outcome", outcomes::outcome).description("Every way to end.").view(View::ObjectDetail),
        Handler::new("desired", sets::desired).description("All that an owner is to have."),
        Handler::new("plan", sets::plan).description("Changes the plan of a pipeline."),
        Handler::new("plan-reads", sets::plan_reads).description("Reads before it plans."),
        Handler::new("extension", sets::extension).description("Requests to an extension."),
        Handler::new("log", outcomes::log).description("Logs at every level."),
        Handler::new("clock", outcomes::clock).description("The language's clock."),
        Handler::new("chance", outcomes::chance).description("Numbers made of the seed."),
        Handler::new("random", outcomes::random).description("A number by the language's generator."),
        Handler::new("batch", batch::batch).accepts(Accepts::Batch).description("Something for each object."),
        Handler::new("either", batch::either).accepts(Accepts::Either).description("Counts objects."),
    ],
}

/// A text of the parameters.
fn parameter(input: &Input, name: &str) -> Result<String, HandlerError> {
    let parameters: Value = input.parameters()?;
    match parameters.get(name).and_then(Value::as_str) {
        Some(text) => Ok(text.to_owned()),
        None => Err(HandlerError::fatal(format!("there is no parameter {name}"))),
    }
}
