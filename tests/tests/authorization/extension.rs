//! Requests to extensions.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use configurator_core::authorization::{AuthorizedOperation, Caller};
use configurator_core::capability::{Capabilities, ExtensionRule};
use configurator_core::document::Document;
use configurator_core::fault::Fault;
use configurator_core::request::{ExtensionRequest, Operation};
use configurator_core::result::Answer;
use configurator_host::sinks::extensions::Extensions;
use configurator_host::sinks::{Scope, Sink};

use super::chance::Chance;
use super::model::matches;
use super::{Rules, scope};

/// The last is an extension that the host does not have.
const EXTENSIONS: [&str; 3] = ["dns", "mail", "DNS"];
const TARGETS: [&str; 10] = [
    "example.org/www",
    "example.org/",
    "example.org",
    "example.com/www",
    "EXAMPLE.ORG/www",
    "example.org/../example.com/www",
    "*",
    "é/日本",
    "example.org/%77ww",
    " example.org/www",
];
const VERBS: [&str; 4] = ["upsert", "delete", "Upsert", "*"];

/// An extension that notes what it is sent, with its own name.
struct Noted {
    name: &'static str,
    arrived: Arc<Mutex<Vec<(&'static str, ExtensionRequest)>>>,
}

#[async_trait]
impl Sink for Noted {
    async fn execute(&self, operation: &AuthorizedOperation, _: &Scope) -> Result<Answer, Fault> {
        let Operation::Extension(request) = operation.operation() else {
            panic!("{operation}");
        };
        let mut arrived = self.arrived.lock().unwrap();
        arrived.push((self.name, request.clone()));
        Ok(Answer::default())
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}

fn rules(chance: &mut Chance) -> Capabilities {
    let mut list = |among: &[&str]| match chance.one_in(2) {
        true => vec!["*".to_owned()],
        false => chance.some(2, among),
    };
    let mut rule = || ExtensionRule {
        extensions: list(&["dns", "d*", "mail"]),
        targets: list(&["example.org/*", "example.*", "é/*", "example.org/www"]),
        verbs: list(&["upsert", "delete"]),
    };
    Capabilities {
        extension: vec![rule(), rule()],
        ..Capabilities::default()
    }
}

#[tokio::test]
async fn an_extension_gets_nothing_that_no_rule_allows() {
    let seed = super::seed();
    let arrived = Arc::<Mutex<Vec<_>>>::default();
    let mut sink = Extensions::default();
    for name in &EXTENSIONS[..2] {
        let arrived = arrived.clone();
        sink.add(*name, Arc::new(Noted { name, arrived }));
    }
    let (mut sent, mut refused) = (0, 0);
    for number in 0..super::EXTENSION_CASES {
        let mut chance = Chance::of(seed, number);
        let request = ExtensionRequest {
            extension: chance.pick(&EXTENSIONS).to_owned(),
            verb: chance.pick(&VERBS).to_owned(),
            target: chance.pick(&TARGETS).to_owned(),
            body: Some(Document::of(&number).unwrap()),
        };
        let rules = Rules::new(&mut chance, rules);
        let any = |patterns: &[String], text: &str| {
            let fits = |pattern: &String| matches(pattern, text);
            patterns.iter().any(fits)
        };
        let allows = |rules: &Capabilities, (): &()| {
            rules.extension.iter().any(|rule| {
                any(&rule.extensions, &request.extension)
                    && any(&rule.targets, &request.target)
                    && any(&rule.verbs, &request.verb)
            })
        };
        let is_known = EXTENSIONS[..2].contains(&request.extension.as_str());
        let is_allowed = is_known && rules.allow((), (), allows);
        let operation = Operation::Extension(request.clone());
        let answer = match rules.authorize(&operation, Caller::default()) {
            Ok(authorized) => sink.execute(&authorized, &scope(&mut chance)).await,
            Err(fault) => Err(fault),
        };
        let came = std::mem::take(&mut *arrived.lock().unwrap());
        let told = || format!("case {number}: {operation:#?}\n{rules:#?}\n{answer:#?}\n{came:?}");
        assert_eq!(answer.is_ok(), is_allowed, "{}", told());
        match is_allowed {
            true => {
                let [(name, came)] = &came[..] else {
                    panic!("{}", told());
                };
                assert_eq!((*name, came), (&*request.extension, &request), "{}", told());
                sent += 1;
            }
            false => {
                assert!(came.is_empty(), "{}", told());
                refused += 1;
            }
        }
    }
    println!("{sent} sent, {refused} refused");
    assert!(sent > 100 && refused > 100, "the cases are one-sided");
}
