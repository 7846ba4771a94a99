//! A handler that does nothing, to measure what a call costs.

use configurator_sdk::{Handler, HandlerError, Input, Output};

fn root(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new())
}

configurator_sdk::module! {
    handlers: [Handler::new("root", root).description("Does nothing.")],
}
