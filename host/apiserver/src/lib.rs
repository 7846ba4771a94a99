//! The embedded Kubernetes-style API.
//!
//! [`ApiServer`] speaks the Kubernetes API over HTTP messages: kube-rs, kubectl and client-go informers use it as they use a real server.
//! It is a [`tower::Service`], so a client in the same process needs no socket; [`ApiServer::serve`] offers it to others over TLS.
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

mod options;
mod server;
mod body;
mod status;
mod request;
mod query;
mod media;
mod resource;
mod builtin;
mod registry;
mod discovery;
mod openapi;
mod object;
mod document;
mod keys;
mod names;
mod selector;
mod history;
mod watch;
mod read;
mod output;
mod write;
mod admission;
mod create;
mod update;
mod patch;
mod delete;
mod scale;
mod garbage;
mod bootstrap;
mod crd;
mod event;
mod review;
mod serve;
mod certificate;

pub use body::ApiBody;
pub use options::{ApiServerOptions, Clock};
pub use serve::{ServeError, ServeOptions, ServedAt};
pub use server::{ApiServer, OpenServerError};
