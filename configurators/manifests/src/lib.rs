//! Keeps the objects of manifests as one set.
//!
//! | handler | does |
//! |---|---|
//! | [`root`](root::root) | asks for the ConfigMaps of an Application |
//! | [`apply`](root::apply) | returns the objects in them as one set |
//! | [`parameters`](root::parameters) | returns the objects in the parameter `manifests` as one set, for any owner |
//!
//! Manifests do not state dependencies. [`dependencies`] reads them from the objects.

pub mod application;
pub mod dependencies;
pub mod documents;
pub mod object;
pub mod root;
pub mod set;
pub mod source;

mod pattern;

use configurator_sdk::Handler;

configurator_sdk::module! {
    handlers: [
        Handler::new("root", root::root).description("Asks for the ConfigMaps of an Application."),
        Handler::new("apply", root::apply).description("Returns the objects of an Application as one set."),
        Handler::new("parameters", root::parameters).description("Returns the objects in the parameter `manifests` as one set."),
    ],
}
