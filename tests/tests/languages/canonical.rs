//! Documents in a form that depends on what they say, not on how a language writes it: keys in order, no spaces, numbers by value.

use std::collections::BTreeMap;

use configurator_core::desired::Content;
use configurator_core::document::Document;
use configurator_core::handler::HandlerOutput;
use configurator_core::request::Operation;
use serde_json::value::RawValue;

/// An output whose documents are all in that form.
pub fn output(mut output: HandlerOutput) -> HandlerOutput {
    let reads = output.reads.iter_mut();
    let pre_terminate = output
        .desired
        .iter_mut()
        .flat_map(|set| &mut set.pre_terminate);
    let requests = output.requests.resource_requests.iter_mut();
    for request in requests.chain(reads).chain(pre_terminate) {
        match &mut request.operation {
            Operation::Kubernetes(request) => each(request.body.as_mut()),
            Operation::Secret(request) => each(request.value.as_mut()),
            Operation::Extension(request) => each(request.body.as_mut()),
            Operation::Config(_) | Operation::Http(_) => {}
        }
    }
    each(output.pass_through_args.iter_mut().map(|(_, one)| one));
    each(output.statuses.iter_mut().map(|one| &mut one.status));
    each(output.data.as_mut());
    each(output.output.as_mut());
    each(output.details.as_mut());
    for entry in output.desired.iter_mut().flat_map(|set| &mut set.entries) {
        match &mut entry.content {
            Content::Kubernetes(object) => each([object]),
            Content::Secret(secret) => each(secret.value.as_mut()),
            Content::Config(_) => {}
        }
    }
    output
}

fn each<'d>(documents: impl IntoIterator<Item = &'d mut Document>) {
    for document in documents {
        *document = Document::parse(text(document.as_str())).unwrap();
    }
}

/// A document.
pub fn text(json: &str) -> String {
    match json.trim_start().as_bytes().first() {
        Some(b'{') => {
            let object: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json).unwrap();
            let fields = object.iter().map(|(name, value)| {
                let name = serde_json::to_string(name).unwrap();
                format!("{name}:{}", text(value.get()))
            });
            let fields: Vec<String> = fields.collect();
            format!("{{{}}}", fields.join(","))
        }
        Some(b'[') => {
            let list: Vec<Box<RawValue>> = serde_json::from_str(json).unwrap();
            let items: Vec<String> = list.iter().map(|item| text(item.get())).collect();
            format!("[{}]", items.join(","))
        }
        Some(b'-' | b'0'..=b'9') => number(json.trim()),
        _ => {
            let plain: serde_json::Value = serde_json::from_str(json).unwrap();
            plain.to_string()
        }
    }
}

/// An integer that is written as a fraction is the same number; what no `f64` has keeps its digits.
fn number(literal: &str) -> String {
    let is_integer = literal
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_digit());
    if is_integer {
        return literal.to_owned();
    }
    let value: f64 = literal.parse().unwrap();
    if value.is_infinite() {
        return literal.to_lowercase();
    }
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return format!("{value:.0}");
    }
    format!("{value:e}")
}

#[test]
fn documents_that_say_the_same_are_the_same() {
    let same = [
        (
            r#"{ "b": [1.0, "\u00e9"], "a": null }"#,
            r#"{"a":null,"b":[1,"é"]}"#,
        ),
        ("1e300", "1e+300"),
        ("0.10", "0.1"),
        ("12345678901234567890123", "12345678901234567890123"),
    ];
    for (one, other) in same {
        assert_eq!(text(one), text(other));
    }
    assert_ne!(text("9007199254740993"), text("9007199254740992"));
}
