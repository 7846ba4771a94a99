//! From trees of handlers and flows to checked nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use configurator_core::document::Document;
use configurator_core::handler::View;
use configurator_core::machine::tree::{
    Flow, Node, NodeKind, NodeRetry, RecoverFrom, WhenUnfinished,
};
use serde_json::Value;

use super::{Flows, more_than_nothing};
use crate::declaration::{DeclarationError, span, wrong};
use crate::resource::machine::{
    FlowSpec, NodeRetrySpec, NodeSpec, RecoverFromSpec, ViewSpec, WhenUnfinishedSpec,
};

/// Trees and flows in one another.
const MAX_DEPTH: usize = 16;
/// Nodes of one phase, those of its flows included.
const MAX_NODES: usize = 1000;

/// What a tree has grown to so far.
#[derive(Default)]
struct Growth {
    /// Flows that the node is in, outermost first.
    within: Vec<String>,
    depth: usize,
    nodes: usize,
}

/// The flows that trees may use.
pub(super) struct Trees<'a> {
    own: &'a BTreeMap<String, FlowSpec>,
    shared: &'a Flows,
}

impl<'a> Trees<'a> {
    /// Trees that may use the flows of the Configurator, and those that are resources of their own.
    pub(super) fn new(own: &'a BTreeMap<String, FlowSpec>, shared: &'a Flows) -> Self {
        Self { own, shared }
    }

    /// Checks a flow of the Configurator.
    pub(super) fn check_flow(&self, name: &str) -> Result<(), DeclarationError> {
        let path = format!("spec.machine.flows[{name:?}]");
        self.flow(&path, name, &mut Growth::default())?;
        Ok(())
    }

    /// Checks the tree with this root.
    pub(super) fn tree(&self, path: &str, root: &NodeSpec) -> Result<Node, DeclarationError> {
        self.node(path, root, &mut Growth::default())
    }

    fn node(
        &self,
        path: &str,
        spec: &NodeSpec,
        growth: &mut Growth,
    ) -> Result<Node, DeclarationError> {
        growth.nodes += 1;
        if growth.depth >= MAX_DEPTH {
            let message = format!("trees and flows are nested deeper than {MAX_DEPTH}");
            return Err(wrong(path, &message));
        }
        if growth.nodes > MAX_NODES {
            let message =
                format!("a phase has at most {MAX_NODES} nodes, those of its flows included");
            return Err(wrong(path, &message));
        }
        let own = [
            ("handler", spec.handler.is_some()),
            ("serial", spec.serial.is_some()),
            ("parallel", spec.parallel.is_some()),
            ("flow", spec.flow.is_some()),
        ];
        let own: Vec<&str> = own
            .iter()
            .filter(|(_, is)| *is)
            .map(|(name, _)| *name)
            .collect();
        match own.as_slice() {
            [_] => {}
            [] => {
                let message = "no handler: say handler, serial, parallel or flow";
                return Err(wrong(path, message));
            }
            [_, second, ..] => {
                let message = format!(
                    "a node is one of handler, serial, parallel and flow; this is {}",
                    own.join(" and ")
                );
                return Err(wrong(&format!("{path}.{second}"), &message));
            }
        }
        if spec.once && spec.handler.is_none() {
            let message = "is for a handler: say it where the requests are made";
            return Err(wrong(&format!("{path}.once"), message));
        }
        let kind = if let Some(handler) = &spec.handler {
            if handler.is_empty() {
                return Err(wrong(&format!("{path}.handler"), "must not be empty"));
            }
            NodeKind::Leaf {
                handler: handler.clone(),
                once: spec.once,
            }
        } else if let Some(flow) = &spec.flow {
            NodeKind::Flow(self.flow(&format!("{path}.flow"), flow, growth)?)
        } else if let Some(children) = &spec.serial {
            NodeKind::Serial(self.children(&format!("{path}.serial"), children, growth)?)
        } else {
            let children = spec.parallel.as_deref().unwrap_or_default();
            NodeKind::Parallel(self.children(&format!("{path}.parallel"), children, growth)?)
        };
        let name = spec
            .name
            .clone()
            .or_else(|| spec.handler.clone())
            .or_else(|| spec.flow.clone())
            .unwrap_or_default();
        if name.is_empty() || name.contains('/') {
            let message = match name.is_empty() {
                true => "a node needs a name".to_owned(),
                false => {
                    format!("the name {name:?} must not contain /, which separates names in a path")
                }
            };
            return Err(wrong(&format!("{path}.name"), &message));
        }
        let parameters = parameters(path, &spec.parameters)?;
        let timeout = spec
            .timeout
            .map(|timeout| more_than_nothing(&format!("{path}.timeout"), timeout))
            .transpose()?;
        Ok(Node {
            name,
            description: spec.description.clone(),
            view: match spec.view {
                ViewSpec::None => View::None,
                ViewSpec::CheckList => View::CheckList,
                ViewSpec::ObjectDetail => View::ObjectDetail,
            },
            parameters,
            retry: retry(&format!("{path}.retry"), &spec.retry)?,
            timeout,
            kind,
        })
    }

    fn children(
        &self,
        path: &str,
        specs: &[Value],
        growth: &mut Growth,
    ) -> Result<Vec<Node>, DeclarationError> {
        if specs.is_empty() {
            return Err(wrong(path, "invalid composite handler: it has no nodes"));
        }
        growth.depth += 1;
        let mut nodes: Vec<Node> = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let spec = NodeSpec::deserialize_value(spec)
                .map_err(|error| wrong(&path, &error.to_string()))?;
            let node = self.node(&path, &spec, growth)?;
            if nodes.iter().any(|other| other.name == node.name) {
                let message = format!(
                    "two nodes beside each other are named {:?}; each needs a name of its own",
                    node.name
                );
                return Err(wrong(&format!("{path}.name"), &message));
            }
            nodes.push(node);
        }
        growth.depth -= 1;
        Ok(nodes)
    }

    fn flow(
        &self,
        path: &str,
        name: &str,
        growth: &mut Growth,
    ) -> Result<Arc<Flow>, DeclarationError> {
        let own = self.own.get_key_value(name);
        let Some((key, spec)) = own.or_else(|| self.shared.get_key_value(name)) else {
            let message =
                format!("there is no flow {name:?}, neither in spec.machine.flows nor as a Flow");
            return Err(wrong(path, &message));
        };
        if growth.within.contains(key) {
            let round = growth.within.iter().chain([key]).map(String::as_str);
            let round: Vec<&str> = round.collect();
            let message = format!("flows go round in a circle: {}", round.join(" → "));
            return Err(wrong(path, &message));
        }
        let at = match own {
            Some(_) => format!("spec.machine.flows[{name:?}]"),
            None => format!("Flow {name:?}: spec"),
        };
        if let Some(other) = &spec.flow_name
            && own.is_some()
            && other != name
        {
            let message = format!("the flow is named {name:?} by its key, and {other:?} here");
            return Err(wrong(&format!("{at}.flowName"), &message));
        }
        let (field, steps) = match (&spec.serial, &spec.steps) {
            (Some(serial), None) => ("serial", serial.clone()),
            (None, Some(steps)) => ("steps", steps.iter().map(step).collect()),
            (None, None) => {
                return Err(wrong(&at, "a flow needs steps: say serial or steps"));
            }
            (Some(_), Some(_)) => {
                return Err(wrong(
                    &format!("{at}.steps"),
                    "say serial or steps, not both",
                ));
            }
        };
        let recover_from = match (spec.recover_from, spec.recover_from_first_step) {
            (Some(RecoverFromSpec::FailedStep), Some(true))
            | (Some(RecoverFromSpec::FirstStep), Some(false)) => {
                let message = "contradicts recoverFrom: leave one of them out";
                return Err(wrong(&format!("{at}.recoverFromFirstStep"), message));
            }
            (Some(RecoverFromSpec::FirstStep), _) | (None, Some(true)) => RecoverFrom::FirstStep,
            (Some(RecoverFromSpec::FailedStep) | None, _) => RecoverFrom::FailedStep,
        };
        growth.within.push(key.clone());
        let steps = self.children(&format!("{at}.{field}"), &steps, growth)?;
        growth.within.pop();
        Ok(Arc::new(Flow {
            name: key.clone(),
            recover_from,
            when_unfinished: match spec.when_unfinished {
                WhenUnfinishedSpec::Finish => WhenUnfinished::Finish,
                WhenUnfinishedSpec::Cancel => WhenUnfinished::Cancel,
                WhenUnfinishedSpec::Refuse => WhenUnfinished::Refuse,
            },
            steps,
        }))
    }
}

impl NodeSpec {
    /// A node that the schema of the API does not describe.
    fn deserialize_value(value: &Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(value.clone())
    }
}

/// A step that names no handler has that of its name.
fn step(step: &Value) -> Value {
    let mut step = step.clone();
    if let Value::Object(fields) = &mut step {
        const WORK: [&str; 5] = ["handler", "className", "serial", "parallel", "flow"];
        if !WORK.iter().any(|name| fields.contains_key(*name))
            && let Some(name) = fields.get("stepName").cloned()
        {
            fields.insert("handler".into(), name);
        }
    }
    step
}

fn retry(path: &str, spec: &NodeRetrySpec) -> Result<NodeRetry, DeclarationError> {
    if spec.threshold == Some(0) {
        return Err(wrong(
            &format!("{path}.threshold"),
            "must be at least 1: the first attempt counts",
        ));
    }
    let delay = spec
        .delay
        .map(|delay| span(&format!("{path}.delay"), delay));
    Ok(NodeRetry {
        threshold: spec.threshold,
        delay: delay.transpose()?,
    })
}

/// Checks the parameters of a node, or of a phase. `None`: there are none.
pub(super) fn parameters(
    path: &str,
    spec: &BTreeMap<String, Value>,
) -> Result<Option<Document>, DeclarationError> {
    let parameters = Value::Object(spec.clone().into_iter().collect());
    (!spec.is_empty())
        .then(|| Document::of(&parameters))
        .transpose()
        .map_err(|error| wrong(&format!("{path}.parameters"), &error.to_string()))
}
