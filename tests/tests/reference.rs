//! The field references in the documentation are made from the schemas of the resources.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::fmt::Write as _;

use configurator_host::resource::definitions;
use configurator_tests::guests::workspace;
use serde_json::Value;

const BEGIN: &str = "<!-- fields: begin -->\n";
const END: &str = "<!-- fields: end -->\n";

/// A heading, the kind, and the object whose fields are listed: `[]` stands for the items of a list, `{}` for the values of a map.
type Section = (&'static str, &'static str, &'static str);

/// Holds a page to the schemas; with `UPDATE_EXPECT=1`, makes its reference anew.
#[track_caller]
fn check(page: &str, sections: &[Section]) {
    let file = workspace().join("docs").join(page);
    let text = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (is, after) = rest.split_once(END).unwrap();
    let should: String = sections.iter().map(section).collect();
    if is == should {
        return;
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return std::fs::write(&file, [before, BEGIN, &should, END, after].concat()).unwrap();
    }
    panic!("docs/{page} says other fields than the schemas do: run this test with UPDATE_EXPECT=1");
}

/// The place of an object in the schema.
fn pointer(path: &str) -> String {
    path.split('.')
        .map(|field| format!("/properties/{field}"))
        .collect::<String>()
        .replace("[]", "/items")
        .replace("{}", "/additionalProperties")
}

fn section((heading, kind, path): &Section) -> String {
    let definitions = definitions();
    let definition = definitions
        .iter()
        .find(|definition| definition["spec"]["names"]["kind"] == *kind)
        .unwrap();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let schema = schema.pointer(&pointer(path)).unwrap();
    let mut text = format!("\n### {heading}\n\n| field | type | default | |\n|---|---|---|---|\n");
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = schema["properties"].as_object().unwrap();
    for (name, field) in fields {
        let default = match field.get("default") {
            Some(default) => format!("`{default}`").replace('"', ""),
            None if required.iter().any(|required| required == name) => "required".to_owned(),
            None => String::new(),
        };
        let description = field["description"].as_str().unwrap_or_default();
        let description = description.replace('\n', " ").replace('|', "\\|");
        let _ = writeln!(
            text,
            "| `{name}` | {} | {default} | {description} |",
            type_of(field)
        );
    }
    text
}

fn type_of(field: &Value) -> String {
    if let Some(values) = field["enum"].as_array() {
        let values = values.iter().filter_map(Value::as_str);
        let values: Vec<String> = values.map(|value| format!("`{value}`")).collect();
        return values.join(", ");
    }
    let bounds = match (field["minimum"].as_f64(), field["maximum"].as_f64()) {
        (Some(from), Some(to)) => format!(", {from} to {to}"),
        (Some(from), None) if from > 0.0 => format!(", at least {from}"),
        _ => String::new(),
    };
    match field["type"].as_str() {
        Some("array") => format!("list of {}", type_of(&field["items"])),
        Some("object") if field.get("additionalProperties").is_some() => "map".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some(name) => format!("{name}{bounds}"),
        None => "any".to_owned(),
    }
}

#[test]
fn the_fields_of_a_machine_are_those_of_its_schema() {
    let machine = |heading, path| (heading, "Configurator", path);
    check(
        "phase-machine.md",
        &[
            machine("spec.machine", "spec.machine"),
            machine("spec.machine.state", "spec.machine.state"),
            machine("spec.machine.phases", "spec.machine.phases[]"),
            machine(
                "spec.machine.phases.events",
                "spec.machine.phases[].events[]",
            ),
            machine(
                "A node: spec.machine.phases.serial, spec.machine.phases.parallel",
                "spec.machine.phases[].serial[]",
            ),
            machine("retry", "spec.machine.phases[].retry"),
            machine("spec.machine.errorCodes", "spec.machine.errorCodes{}"),
        ],
    );
}

#[test]
fn the_fields_of_flows_and_commands_are_those_of_their_schemas() {
    let command = |heading, path| (heading, "Command", path);
    check(
        "flows.md",
        &[
            (
                "spec.machine.flows of a Configurator",
                "Configurator",
                "spec.machine.flows{}",
            ),
            ("Flow: spec", "Flow", "spec"),
            ("Flow: spec.steps", "Flow", "spec.steps[]"),
            command("Command: spec", "spec"),
            command("Command: spec.configurator", "spec.configurator"),
            command("Command: spec.target", "spec.target"),
            command("Command: spec.signal", "spec.signal"),
            command("Command: spec.skip", "spec.skip"),
            command("Command: status", "status"),
        ],
    );
}
