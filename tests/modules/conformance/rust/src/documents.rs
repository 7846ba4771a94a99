//! Documents: read, made and handed on.

use std::collections::BTreeMap;

use configurator_sdk::kubernetes::CONFIG_MAP;
use configurator_sdk::{HandlerError, Input, Json, Output, Request};
use serde_json::{Value, json};

pub fn object(input: &Input) -> Result<Output, HandlerError> {
    let object: Value = input.object()?;
    Output::new()
        .pass("read", &object)
        .map(|output| output.pass_json("untouched", input.object_json()))
}

/// Puts the argument `raw` into documents, as it stands.
pub fn nested_json(input: &Input) -> Result<Output, HandlerError> {
    let raw = Json::from(input.arg_json("raw").unwrap_or("null"));
    Output::new()
        .pass("object", &BTreeMap::from([("a", &raw)]))?
        .pass("list", &(1, [&raw, &raw], "é"))
}

/// Integers of at most 53 bits and fractions, which every language has.
pub fn numbers(input: &Input) -> Result<Output, HandlerError> {
    let object: Value = input.object()?;
    let of = |name: &str| object["numbers"][name].clone();
    let integer = of("integer").as_i64().unwrap_or_default();
    let fraction = of("fraction").as_f64().unwrap_or_default();
    Ok(Output::new().data(json!({
        "doubled": integer * 2,
        "halved": fraction / 2.0,
        "negative": -integer,
        "list": [of("zero"), of("integer"), of("fraction")],
    })))
}

pub fn unicode(input: &Input) -> Result<Output, HandlerError> {
    let object: Value = input.object()?;
    let text = object["text"].as_str().unwrap_or_default();
    let points: Vec<u32> = text.chars().map(u32::from).collect();
    let body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": "texts"},
        "data": {
            text: "key",
            "quoted": format!("\"{text}\""),
            "control": "\u{0}\u{1f}\t\n\u{7f}",
            "escapes": "\\ / < > & ' \u{2028}",
            "astral": "𝄞 🙂 汉字",
        },
    });
    Output::new()
        .request(Request::new(
            format!("名-{text}"),
            CONFIG_MAP.apply(("shop", "texts"), body),
        ))
        .pass("points", &points)
}

/// As many levels as the parameter `levels` says: arrays in arrays, the innermost empty.
pub fn deep(input: &Input) -> Result<Output, HandlerError> {
    let parameters: Value = input.parameters()?;
    let levels = parameters["levels"].as_u64().unwrap_or(1);
    let mut nested = json!([]);
    for _ in 1..levels {
        nested = json!([nested]);
    }
    Output::new().pass("nested", &nested)
}

/// As many items as the parameter `items` says.
pub fn large(input: &Input) -> Result<Output, HandlerError> {
    let parameters: Value = input.parameters()?;
    let count = parameters["items"].as_u64().unwrap_or_default();
    let items: Vec<Value> = (0..count)
        .map(|i| json!({"index": i, "name": format!("item-{i}"), "even": i % 2 == 0, "tags": ["a", "b", null]}))
        .collect();
    Output::new().pass("items", &items)
}
