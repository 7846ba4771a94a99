//! Gives every Namespace a ConfigMap `hello`.

use configurator_sdk::kubernetes::CONFIG_MAP;
use configurator_sdk::{Handler, HandlerError, Input, Output, Request};
use serde_json::{Value, json};

fn root(input: &Input) -> Result<Output, HandlerError> {
    let namespace: Value = input.object()?;
    let name = namespace.pointer("/metadata/name").and_then(Value::as_str);
    let name = name.ok_or_else(|| HandlerError::fatal("the object has no name"))?;
    let hello = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": name, "name": "hello"},
        "data": {"greeting": format!("hello, {name}")},
    });
    Ok(Output::new().request(Request::new(
        "hello",
        CONFIG_MAP.apply((name, "hello"), hello),
    )))
}

configurator_sdk::module! {
    handlers: [Handler::new("root", root).description("Gives a Namespace its ConfigMap.")],
}
