//! Write configurator handlers in Rust.
//!
//! A handler is a plain function. It reads an [`Input`], decides, and returns an [`Output`]: requests that the host
//! carries out, and arguments for the next phase. It talks to no server, reads no clock and keeps nothing.
//!
//! ```
//! use configurator_sdk::kubernetes::CONFIG_MAP;
//! use configurator_sdk::{Handler, HandlerError, Input, Output, Request};
//! use serde_json::{Value, json};
//!
//! /// Gives every Namespace a ConfigMap that names it.
//! fn root(input: &Input) -> Result<Output, HandlerError> {
//!     let namespace: Value = input.object()?;
//!     let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
//!     let body = json!({
//!         "apiVersion": "v1",
//!         "kind": "ConfigMap",
//!         "metadata": {"namespace": name, "name": "about"},
//!         "data": {"namespace": name},
//!     });
//!     let about = CONFIG_MAP.apply((name, "about"), body);
//!     Ok(Output::new().request(Request::new("about", about)))
//! }
//!
//! configurator_sdk::module! {
//!     handlers: [Handler::new("root", root).description("Gives every Namespace a ConfigMap.")],
//! }
//!
//! // A test calls it like any function.
//! # fn main() -> Result<(), HandlerError> {
//! let input = Input::builder().object(json!({"metadata": {"name": "shop"}})).build();
//! let output = root(&input)?;
//! assert_eq!(output.requests.resource_requests[0].request_name, "about");
//! # Ok(())
//! # }
//! ```
//!
//! Built for `wasm32-unknown-unknown` as a `cdylib`, and encoded as a component, this is a complete module.
//!
//! - What a handler gets: [`Input`], [`RequestResult`].
//! - What it returns: [`Output`], [`Request`], [`HandlerError`].
//! - What it may ask for: [`kubernetes`], [`configstore`], [`secretstore`], [`http`], [`extension`], and a [`DesiredSet`].
//! - What a module is: [`module!`], [`Handler`], [`Registry`].
//!
//! # Two modes
//!
//! In a chain the phases of a Configurator follow one another, and the next phase gets the results of this one. In a machine
//! a handler is a leaf of a phase's tree and is entered until it is [`Outcome::Done`]: it asks with [`Output::again`], gets the answers
//! by [`Input::answer`] and its own notes by [`Input::notes`] when it is entered again, and leaves memory with [`Output::wait`].
//!
//! ```
//! use configurator_sdk::kubernetes::POD;
//! use configurator_sdk::{HandlerError, Input, Output, Request};
//! use serde_json::Value;
//! use std::time::Duration;
//!
//! /// Is done when the Pod runs.
//! fn await_pod(input: &Input) -> Result<Output, HandlerError> {
//!     let ask = Request::new("pod", POD.get(("shop", "web")));
//!     let Some(answer) = input.answer("pod") else {
//!         return Ok(Output::new().request(ask).again());
//!     };
//!     let pod: Value = answer.object()?;
//!     match pod["status"]["phase"].as_str() {
//!         Some("Running") => Ok(Output::new()),
//!         _ => Ok(Output::new().request(ask).again_after(Duration::from_secs(5))),
//!     }
//! }
//! # let output = await_pod(&Input::builder().build()).unwrap();
//! # assert_eq!(output.requests.resource_requests.len(), 1);
//! ```
//!
//! # What a host refuses
//!
//! An output that asks for any of this does nothing at all, and its run fails with `UnsupportedResourceOperation`:
//!
//! - in a chain: [`Output::again`], [`Output::again_after`], [`Output::wait`], [`Output::next_phase`];
//! - in a machine: [`Output::desired`] of a node with `once`, and of all but one of several nodes side by side;
//! - in chains and machines, today: [`Output::stop`]; [`Request::once`], in whose place a node of a machine is marked `once`; [`Output::read`]
//!   and [`Output::remove_from_plan`], which need a pipeline.
//!
//! [`Request::depends_on`] and [`Request::ready_when`] need [`Output::graph`], and make any other output invalid.
//!
//! In a chain, [`Output::data`], [`Output::progress`], [`Output::output`] and [`Output::details`] are checked and then left unread,
//! and in the input `last` and `outputs` are absent or empty.
//!
//! # Numbers, time and chance
//!
//! A number is what it is read into. In a [`serde_json::Value`] an integer beyond `u64` and `i64` becomes an `f64`, and a number beyond
//! that is an error; what is handed on as text, with [`Input::object_json`] or [`Output::pass_json`], loses nothing. A [`Json`] within
//! a struct that is written stays as it stands.
//!
//! The time is [`Context::now`], when this entry began, and chance is [`Context::seed`]: both are the same when the same call is made again. A
//! module has no clock, on which `std::time` panics, and no other chance.
//!
//! # Features
//!
//! - `bump-allocator` (default): on wasm32, an allocator that never frees. It suits an instance that lives for one
//!   call, and every instance does. Without it a module has Rust's own.
//! - `k8s-openapi`: `kubernetes::Resource::of`, requests for the types of `k8s-openapi`.

pub mod bindings;

mod module;

mod handler;
mod input;
mod input_builder;
mod result;

mod error;
mod output;
mod request;
mod request_line;

pub mod configstore;
mod desired;
mod desired_line;
pub mod extension;
pub mod http;
pub mod kubernetes;
pub mod secretstore;

mod json;
pub mod log;
mod text;

#[cfg(target_arch = "wasm32")]
mod panic_hook;

#[cfg(any(test, all(target_arch = "wasm32", feature = "bump-allocator")))]
mod bump;

pub use self::handler::{Handler, Registry};
pub use self::input_builder::InputBuilder;
pub use self::json::Json;
pub use self::text::Text;

#[doc(hidden)]
pub use self::module::export;

#[cfg(feature = "k8s-openapi")]
pub use k8s_openapi;

/// What a handler gets: the object or objects, the results and arguments of the previous phase, and facts about the
/// call. Natively, [`Input::builder`] makes one for a test. Messages of the compiler call it `HandlerInput`.
#[doc(inline)]
pub use self::bindings::exports::configurator::handler::handler::HandlerInput as Input;

/// What a handler returns. Start with [`Output::new`]; the fields are open for what the methods do not cover. Messages
/// of the compiler call it `HandlerOutput`.
#[doc(inline)]
pub use self::bindings::exports::configurator::handler::handler::HandlerOutput as Output;

/// Why a handler could not decide. Made by [`HandlerError::retry`] and [`HandlerError::fatal`].
#[doc(inline)]
pub use self::bindings::exports::configurator::handler::handler::HandlerError;

/// One wish. Made by [`Request::new`] of a name and an operation.
#[doc(inline)]
pub use self::bindings::configurator::handler::requests::ResourceRequest as Request;

/// What the server answered to one request.
#[doc(inline)]
pub use self::bindings::configurator::handler::requests::RequestResult;

#[doc(inline)]
pub use self::bindings::configurator::handler::desired::{
    ConfigContent, ConfigKey, Content, DesiredEntry, DesiredSet, OnConflict, OnDelete, OnExisting,
    OnImmutable, Orders, Plan, SecretContent, Termination, TerminationPolicy,
};
#[doc(inline)]
pub use self::bindings::configurator::handler::requests::{
    BatchErrorStrategy, ExecuteStrategy, HttpResponse, OnError, Operation, Precondition, Readiness,
    ResultEntry,
};
#[doc(inline)]
pub use self::bindings::configurator::handler::types::{
    ErrorKind, ObjectKey, ObjectRef, RequestError, RequestSink,
};
#[doc(inline)]
pub use self::bindings::exports::configurator::handler::handler::{
    Accepts, Cause, Context, Event, EventType, HandlerState, Outcome, Progress, ResourceObject,
    Signal, StatusUpdate, View, Wake, WatchEvent, WatchedObject,
};
