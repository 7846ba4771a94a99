//! The embedded Kubernetes-style API.
//!
//! [`ApiServer`] speaks the Kubernetes API over HTTP messages: kube-rs, kubectl and client-go informers use it as they use a real server.
//! It is a [`tower::Service`], so a client in the same process needs no socket; [`ApiServer::serve`] offers it to others over TLS.
//!
//! Bodies and answers are JSON or, for built-in kinds and for metadata, protobuf. Bodies may be YAML, too.
//!
//! It stores objects and keeps their rules. It has no controllers but garbage collection and the deletion of namespaces: a Deployment makes no Pods.
//!
//! # Examples
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use configurator_apiserver::{ApiServer, ApiServerOptions};
//! use configurator_store::Store;
//! use k8s_openapi::api::core::v1::Namespace;
//!
//! let server = ApiServer::open(Store::memory(), ApiServerOptions::new(jiff::Timestamp::now)).await.unwrap();
//! let client = kube::Client::new(server, "default");
//! let namespaces = kube::Api::<Namespace>::all(client).list(&Default::default()).await.unwrap();
//! assert_eq!(namespaces.items.len(), 4);
//! # });
//! ```

mod admission;
mod body;
mod bootstrap;
mod builtin;
mod certificate;
mod crd;
mod create;
mod delete;
mod discovery;
mod document;
mod event;
mod garbage;
mod history;
mod json;
mod keys;
mod labels;
mod media;
mod names;
mod object;
mod openapi;
mod options;
mod output;
mod patch;
mod pieces;
mod protobuf;
mod query;
mod read;
mod registry;
mod request;
mod resource;
mod review;
mod scale;
mod selector;
mod serve;
mod server;
mod status;
mod update;
mod watch;
mod wire;
mod write;

pub use body::ApiBody;
pub use labels::label_selector;
pub use options::{ApiServerOptions, Clock};
pub use serve::{ServeError, ServeOptions, ServedAt};
pub use server::{ApiServer, OpenServerError};
