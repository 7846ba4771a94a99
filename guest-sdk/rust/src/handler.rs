//! Handlers, and the registry that finds them by name.

use crate::bindings::exports::configurator::handler::handler::{
    HandlerDescription, ModuleDescription,
};
use crate::{Accepts, HandlerError, Input, Output, ResourceObject, View};

/// A function with the name under which a Configurator's phases call it.
///
/// ```
/// use configurator_sdk::{Accepts, Handler, HandlerError, Input, Output};
///
/// fn write(input: &Input) -> Result<Output, HandlerError> {
///     Ok(Output::new())
/// }
///
/// const WRITE: Handler = Handler::new("write-config", write)
///     .description("Writes the configuration of each Deployment.")
///     .accepts(Accepts::Batch)
///     .parameters_schema(r#"{"type": "object"}"#);
/// assert_eq!(WRITE.name(), "write-config");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    name: &'static str,
    run: fn(&Input) -> Result<Output, HandlerError>,
    description: &'static str,
    view: View,
    accepts: Accepts,
    parameters_schema: Option<&'static str>,
    capabilities: Option<&'static str>,
}

impl Handler {
    /// A handler of one object, without view or parameters.
    pub const fn new(
        name: &'static str,
        run: fn(&Input) -> Result<Output, HandlerError>,
    ) -> Handler {
        Handler {
            name,
            run,
            description: "",
            view: View::None,
            accepts: Accepts::One,
            parameters_schema: None,
            capabilities: None,
        }
    }

    /// One sentence for `configurator inspect`.
    #[must_use]
    pub const fn description(mut self, description: &'static str) -> Handler {
        self.description = description;
        self
    }

    /// How a person sees the handler's progress. Default: [`View::None`]. In a chain only `configurator inspect`
    /// shows it.
    #[must_use]
    pub const fn view(mut self, view: View) -> Handler {
        self.view = view;
        self
    }

    /// Whether it takes one object, a batch, or both. Default: [`Accepts::One`].
    #[must_use]
    pub const fn accepts(mut self, accepts: Accepts) -> Handler {
        self.accepts = accepts;
        self
    }

    /// The JSON Schema that the Configurator's `spec.parameters` must meet. `configurator inspect` shows it; the host
    /// does not hold the parameters to it, so the handler has to.
    #[must_use]
    pub const fn parameters_schema(mut self, schema: &'static str) -> Handler {
        self.parameters_schema = Some(schema);
        self
    }

    /// What the handler may ask for at most: JSON in the form of the Configurator's `spec.capabilities`. A host does
    /// not run the module where a Configurator grants less. Without it nothing is said.
    #[must_use]
    pub const fn capabilities(mut self, capabilities: &'static str) -> Handler {
        self.capabilities = Some(capabilities);
        self
    }

    /// The name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// The handlers of a module.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    handlers: &'static [Handler],
}

impl Registry {
    /// A registry of these handlers. Meant for a `static`, where the checks are made by the compiler.
    ///
    /// # Panics
    /// When there are no handlers, when one has no name, or when two have the same name.
    #[allow(
        clippy::indexing_slicing,
        reason = "iterators are not const; the indices are below the length"
    )]
    pub const fn new(handlers: &'static [Handler]) -> Registry {
        assert!(!handlers.is_empty(), "a module needs at least one handler");
        let mut i = 0;
        while i < handlers.len() {
            assert!(!handlers[i].name.is_empty(), "a handler needs a name");
            let mut j = 0;
            while j < i {
                assert!(
                    !same(handlers[i].name, handlers[j].name),
                    "two handlers have the same name"
                );
                j += 1;
            }
            i += 1;
        }
        Registry { handlers }
    }

    /// The handlers, in the order given.
    pub const fn handlers(&self) -> &'static [Handler] {
        self.handlers
    }

    /// Calls the handler of this name.
    ///
    /// # Errors
    /// Fatal, when there is no such handler or it does not accept this input; and whatever the handler returns.
    pub fn call(&self, name: &str, input: &Input) -> Result<Output, HandlerError> {
        let Some(handler) = self.handlers.iter().find(|handler| handler.name == name) else {
            let known: Vec<&str> = self.handlers.iter().map(Handler::name).collect();
            return Err(HandlerError::fatal(format!(
                "this module has no handler `{name}`; it has: {}",
                known.join(", ")
            )));
        };
        match (handler.accepts, &input.resource_object) {
            (Accepts::One, ResourceObject::Batch(_)) => Err(HandlerError::fatal(format!(
                "handler `{name}` takes one object, and got a batch: remove `chain.batch` from the Configurator"
            ))),
            (Accepts::Batch, ResourceObject::One(_)) => Err(HandlerError::fatal(format!(
                "handler `{name}` takes a batch, and got one object: add `chain.batch` to the Configurator"
            ))),
            _ => (handler.run)(input),
        }
    }

    pub(crate) fn describe(&self) -> ModuleDescription {
        let describe = |handler: &Handler| HandlerDescription {
            name: handler.name.to_owned(),
            description: handler.description.to_owned(),
            view: handler.view,
            accepts: handler.accepts,
            parameters_schema: handler.parameters_schema.map(str::to_owned),
            capabilities: handler.capabilities.map(str::to_owned),
        };
        ModuleDescription {
            handlers: self.handlers.iter().map(describe).collect(),
        }
    }
}

/// Equality of strings that a `const fn` can compute.
#[allow(
    clippy::indexing_slicing,
    reason = "iterators are not const; the index is below both lengths"
)]
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &Input) -> Result<Output, HandlerError> {
        Ok(Output::new())
    }

    static HANDLERS: Registry = Registry::new(&[
        Handler::new("root", nothing)
            .description("Does nothing.")
            .capabilities(r#"{"secretstore":[]}"#),
        Handler::new("write-all", nothing)
            .accepts(Accepts::Batch)
            .view(View::CheckList),
        Handler::new("either", nothing).accepts(Accepts::Either),
    ]);

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = HANDLERS
            .call("rooot", &Input::builder().build())
            .unwrap_err();
        assert!(error.fatal);
        expect_test::expect!["this module has no handler `rooot`; it has: root, write-all, either"]
            .assert_eq(&error.message);
    }

    #[test]
    fn a_handler_gets_only_what_it_accepts() {
        let one = Input::builder().object("{}").build();
        let batch = Input::builder().batch(["{}", "{}"]).build();
        assert!(HANDLERS.call("root", &one).is_ok());
        assert!(HANDLERS.call("write-all", &batch).is_ok());
        assert!(HANDLERS.call("either", &one).is_ok() && HANDLERS.call("either", &batch).is_ok());
        expect_test::expect![
            "handler `root` takes one object, and got a batch: remove `chain.batch` from the Configurator"
        ]
        .assert_eq(&HANDLERS.call("root", &batch).unwrap_err().message);
        expect_test::expect![
            "handler `write-all` takes a batch, and got one object: add `chain.batch` to the Configurator"
        ]
        .assert_eq(&HANDLERS.call("write-all", &one).unwrap_err().message);
    }

    #[test]
    fn the_description_lists_every_handler() {
        let names: Vec<_> = HANDLERS
            .describe()
            .handlers
            .into_iter()
            .map(|h| (h.name, h.accepts, h.view))
            .collect();
        assert_eq!(
            names,
            [
                ("root".to_owned(), Accepts::One, View::None),
                ("write-all".to_owned(), Accepts::Batch, View::CheckList),
                ("either".to_owned(), Accepts::Either, View::None),
            ]
        );
        let capabilities = HANDLERS
            .describe()
            .handlers
            .into_iter()
            .map(|h| h.capabilities);
        assert_eq!(
            capabilities.collect::<Vec<_>>(),
            [Some(r#"{"secretstore":[]}"#.to_owned()), None, None]
        );
    }

    #[test]
    fn names_are_compared_as_a_whole() {
        assert!(same("root", "root"));
        assert!(!same("root", "roots"));
        assert!(!same("root", "boot"));
    }
}
