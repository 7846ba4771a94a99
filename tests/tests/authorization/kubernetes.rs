//! Requests to the Kubernetes API.

use configurator_core::authorization::Caller;
use configurator_core::fault::Fault;
use configurator_core::request::{KubernetesVerb, Operation, PatchType};
use configurator_core::result::Answer;
use configurator_core::service_account::ServiceAccount;
use configurator_host::sinks::kubernetes::KubernetesSink;
use configurator_host::sinks::{Scope, Sink as _};
use serde_json::Value;

use super::chance::Chance;
use super::generate::{self, Case};
use super::model::{Expected, FIELD_MANAGER, expected};
use super::server::{Arrived, CONTENT, Server};
use super::{Rules, scope};

#[tokio::test]
async fn what_reaches_the_server_is_what_the_rules_allow() {
    let seed = super::seed();
    let server = Server::default();
    let sink = KubernetesSink::new(&server.client().into());
    let (mut sent, mut refused, mut hidden) = (0, 0, 0);
    for number in 0..super::KUBERNETES_CASES {
        let mut chance = Chance::of(seed, number);
        let case = generate::case(&mut chance);
        let rules = Rules::new(&mut chance, |chance| generate::rules(chance, &case.request));
        let scope = scope(&mut chance);
        server.set_exists(case.exists);
        let answer = execute(&sink, &case, &rules, &scope).await;
        let arrived = server.take();
        let late = rules.late.as_ref();
        let late = late.map(|late| expected(&case, std::slice::from_ref(late)));
        let wanted = expected(&case, &rules.early).filter(|early| match &late {
            None => true,
            Some(None) => false,
            Some(Some(late)) => late.may_read || !early.may_read,
        });
        let told = || {
            format!(
                "case {number}: {:#?}\nbody {:?}\nrules {rules:#?}\nscope {scope:?}\nwanted {wanted:#?}\narrived {arrived:#?}\nanswer {answer:#?}",
                case.request, case.body
            )
        };
        match &wanted {
            None => {
                assert!(
                    arrived.is_empty(),
                    "sent, although it should not be\n{}",
                    told()
                );
                assert!(answer.is_err(), "answered\n{}", told());
                refused += 1;
            }
            Some(wanted) => {
                let checked = compare(&case, wanted, &scope, &arrived);
                assert_eq!(checked, Ok(()), "{}", told());
                let shows = shows_content(&answer);
                assert!(wanted.may_read || !shows, "shown\n{}", told());
                hidden += u32::from(!wanted.may_read && wanted.is_sent);
                sent += 1;
            }
        }
    }
    println!("{sent} sent, of which {hidden} with hidden answers; {refused} refused");
    assert!(
        sent > 2_000 && refused > 2_000 && hidden > 500,
        "the cases are one-sided"
    );
}

async fn execute(
    sink: &KubernetesSink,
    case: &Case,
    rules: &Rules,
    scope: &Scope,
) -> Result<Answer, Fault> {
    let caller = Caller {
        field_manager: FIELD_MANAGER,
        namespace: "shop",
        effect: "effect",
        ..Caller::default()
    };
    let operation = Operation::Kubernetes(case.request.clone());
    let authorized = rules.authorize(&operation, caller)?;
    let answer = sink.execute(&authorized, scope).await?;
    Ok(authorized.visible(answer))
}

/// Whether what came is what should have come, to the last letter.
fn compare(
    case: &Case,
    wanted: &Expected,
    scope: &Scope,
    arrived: &[Arrived],
) -> Result<(), String> {
    let account = scope.service_account.as_ref();
    let user = account.map(ServiceAccount::user).unwrap_or_default();
    if let Some(other) = arrived.iter().find(|it| it.user != user) {
        return Err(format!("it was sent as {:?}", other.user));
    }
    let mut arrived = arrived.iter();
    if wanted.reads_before {
        let read = arrived.next().ok_or("the object was not read first")?;
        if read.method != "GET" || !read.query.is_empty() || read.body != Value::Null {
            return Err("the first request does not read".into());
        }
    }
    if wanted.is_sent {
        let mut main = arrived.next().ok_or("it was not sent")?.clone();
        let mut body = wanted.body.clone();
        if wanted.is_generated {
            let name = main.body["metadata"]["name"].take();
            let prefix = case.body.generate_name.clone().unwrap();
            if !name
                .as_str()
                .is_some_and(|name| name.starts_with(&prefix) && name.len() > prefix.len())
            {
                return Err(format!("{name} is not made of {prefix}"));
            }
            body["metadata"]["name"] = Value::Null;
        }
        let media_type = match (case.request.verb, case.request.patch_type) {
            (KubernetesVerb::Get | KubernetesVerb::List, _) => "",
            (KubernetesVerb::Apply, _) => "application/apply-patch+yaml",
            (KubernetesVerb::Patch, PatchType::Merge) => "application/merge-patch+json",
            (KubernetesVerb::Patch, PatchType::Json) => "application/json-patch+json",
            (KubernetesVerb::Patch, PatchType::Strategic) => {
                "application/strategic-merge-patch+json"
            }
            _ => "application/json",
        };
        let want = Arrived {
            method: wanted.method.to_owned(),
            path: wanted.path.clone(),
            query: wanted.query.clone(),
            media_type: media_type.to_owned(),
            user,
            body,
        };
        if main != want {
            return Err(format!("it should be {want:#?}"));
        }
    }
    // An object that somebody created in between is read.
    let is_existing = case.request.verb == KubernetesVerb::Create && case.exists;
    match arrived.next() {
        None => Ok(()),
        Some(last) if is_existing && wanted.may_read && last.method == "GET" => Ok(()),
        Some(last) => Err(format!("nobody asked for {last:?}")),
    }
}

fn shows_content(answer: &Result<Answer, Fault>) -> bool {
    match answer {
        Ok(answer) => answer
            .query_objects
            .iter()
            .any(|object| object.as_str().contains(CONTENT)),
        Err(fault) => fault.message.contains(CONTENT),
    }
}
