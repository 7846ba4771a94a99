//! What makes a crate a module.

/// Makes the crate a module of these handlers.
///
/// Each is an expression of type [`Handler`](crate::Handler). The macro defines `HANDLERS`, a
/// [`Registry`](crate::Registry) that tests can call by name, and on wasm32 exports `describe` and `handle`.
/// Invoke it once, at the root of a crate with `crate-type = ["cdylib", "rlib"]`.
///
/// No handlers, or two of one name, is a compile error:
///
/// ```compile_fail
/// # use configurator_sdk::{Handler, HandlerError, Input, Output};
/// # fn root(_: &Input) -> Result<Output, HandlerError> { Ok(Output::new()) }
/// configurator_sdk::module! {
///     handlers: [Handler::new("root", root), Handler::new("root", root)],
/// }
/// # fn main() {}
/// ```
///
/// So is a function of another shape; the compiler shows the one it wants, `fn(&Input) -> Result<Output, HandlerError>`:
///
/// ```compile_fail
/// # use configurator_sdk::{Handler, HandlerError, Input, Output};
/// # fn root(_: Input) -> Output { Output::new() }
/// configurator_sdk::module! {
///     handlers: [Handler::new("root", root)],
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! module {
    (handlers: [$($handler:expr),* $(,)?] $(,)?) => {
        /// The handlers of this module, in the order in which `describe` lists them.
        pub static HANDLERS: $crate::Registry = $crate::Registry::new(&[$($handler),*]);

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "exported symbols")]
        const _: () = {
            struct Module;

            impl $crate::export::Guest for Module {
                fn describe() -> $crate::export::ModuleDescription {
                    $crate::export::describe(&HANDLERS)
                }

                fn handle(
                    handler: ::std::string::String,
                    input: $crate::Input,
                ) -> ::std::result::Result<$crate::Output, $crate::HandlerError> {
                    $crate::export::handle(&HANDLERS, &handler, input)
                }
            }

            $crate::bindings::export!(Module with_types_in $crate::bindings);
        };
    };
}

/// What the expansion of [`module!`](crate::module) calls; not for use by hand.
pub mod export {
    pub use crate::bindings::exports::configurator::handler::handler::{Guest, ModuleDescription};
    use crate::{HandlerError, Input, Output, Registry};

    /// The export `describe`.
    pub fn describe(registry: &Registry) -> ModuleDescription {
        enter();
        registry.describe()
    }

    /// The export `handle`.
    pub fn handle(
        registry: &Registry,
        handler: &str,
        input: Input,
    ) -> Result<Output, HandlerError> {
        enter();
        let result = registry.call(handler, &input);
        // Dropping it would walk the whole input to free nothing.
        #[cfg(feature = "bump-allocator")]
        std::mem::forget(input);
        result
    }

    fn enter() {
        #[cfg(target_arch = "wasm32")]
        crate::panic_hook::install();
    }
}
