//! The handlers, called natively.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use configurator_sdk::{
    Cause, HandlerError, Input, InputBuilder, Outcome, Output, RequestResult, RequestSink, Signal,
};
use expect_test::{Expect, expect};
use move_to_vpc::{account, clone_enis, network, pause};
use serde_json::{Value, json};

fn input(more: Value) -> InputBuilder {
    let mut spec = json!({
        "appId": "7", "secretId": "AKID", "secretKey": "cloud-key", "region": "north",
        "srcVpcId": "vpc-old", "dstVpcId": "vpc-new", "keepIps": true,
    });
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    Input::builder()
        .object(json!({"metadata": {"name": "web"}, "spec": spec}))
        .parameters(json!({"endpoint": "https://cloud", "pollMilliseconds": 2000}))
}

fn key() -> RequestResult {
    let secret = json!({"name": "cloud-key", "version": 1, "value": "hush"});
    RequestResult::answered("key", RequestSink::Secretstore, [secret])
}

/// A handler's entry after one that was answered like this.
fn entry(
    handler: fn(&Input) -> Result<Output, HandlerError>,
    before: &Output,
    answers: Vec<RequestResult>,
) -> Result<Output, HandlerError> {
    handler(&input(json!({})).after(before, answers).build())
}

fn check(output: &Output, expected: Expect) {
    let outcome = &output.outcome;
    let data = output.data.as_deref().unwrap_or_default();
    expected.assert_eq(&format!("{output}{outcome:?}\n{data}\n"));
}

#[test]
fn a_check_fetches_the_key_then_asks_then_judges() {
    let first = account::secret_app_id(&input(json!({})).build()).unwrap();
    check(
        &first,
        expect![[r#"
        key: secret get cloud-key
        Outcome::Again(None)

    "#]],
    );
    let second = entry(account::secret_app_id, &first, vec![key()]).unwrap();
    check(
        &second,
        expect![[r#"
        key: secret get cloud-key
        question/0: http GET https://cloud/account
        Outcome::Again(None)

    "#]],
    );
    let account =
        |id: &str| RequestResult::responded("question/0", 200, json!({"appId": id, "uin": "1"}));
    let third = entry(account::secret_app_id, &second, vec![key(), account("7")]).unwrap();
    assert_eq!(third.outcome, Outcome::Done);
    let error = entry(account::secret_app_id, &second, vec![key(), account("8")]).unwrap_err();
    assert!(error.fatal);
    expect!["the access key AKID belongs to the account 8, not to 7"].assert_eq(&error.message);
}

#[test]
fn a_busy_cloud_is_left_alone_for_as_long_as_it_asks() {
    let first = account::secret_app_id(&input(json!({})).build()).unwrap();
    let mut busy = RequestResult::responded("question/0", 429, json!({}));
    let response = busy.http_response.as_mut().unwrap();
    response.headers.push(("retry-after".into(), "7".into()));
    let output = entry(account::secret_app_id, &first, vec![key(), busy]).unwrap();
    assert_eq!(output.outcome, Outcome::Again(Some(7000)));
    let down = RequestResult::responded("question/0", 503, json!({}));
    let output = entry(account::secret_app_id, &first, vec![key(), down]).unwrap();
    assert_eq!(output.outcome, Outcome::Again(Some(1000)));
}

#[test]
fn a_key_that_is_not_accepted_needs_a_person() {
    let first = account::secret_app_id(&input(json!({})).build()).unwrap();
    let refused = RequestResult::responded("question/0", 401, json!({"message": "no such key"}));
    let error = entry(account::secret_app_id, &first, vec![key(), refused]).unwrap_err();
    assert_eq!(
        (error.code.as_deref(), error.fatal),
        (Some("AuthFailure"), true)
    );
    expect!["the cloud does not accept the access key: no such key"].assert_eq(&error.message);
}

#[test]
fn addresses_that_may_change_are_not_looked_at() {
    let input = input(json!({"keepIps": false})).build();
    let output = network::ips_not_occupied(&input).unwrap();
    assert_eq!(output, Output::new());
}

#[test]
fn a_person_approves() {
    let at_once = pause::pause(&input(json!({})).build()).unwrap();
    assert_eq!(at_once.outcome, Outcome::Done);
    let asked = json!({"manuallyConfirm": true});
    let waits = pause::pause(&input(asked.clone()).build()).unwrap();
    assert!(matches!(&waits.outcome, Outcome::Wait(wake) if wake.signals == ["approved"]));
    let signal = Signal {
        name: "approved".into(),
        data: None,
    };
    let told = input(asked).context(|context| context.cause = Cause::Signal(signal));
    let output = pause::pause(&told.build()).unwrap();
    assert_eq!(output.outcome, Outcome::Done);
    expect![[r#"{"confirmed":true}"#]].assert_eq(&output.statuses[0].status);
}

fn vpc(id: &str, subnet: &str, number: usize) -> RequestResult {
    let subnets = json!([{"id": subnet, "cidr": "10.0.0.0/16", "zone": "1"}]);
    let vpc = json!({"id": id, "appId": "7", "region": "north", "subnets": subnets});
    RequestResult::responded(format!("question/{number}"), 200, vpc)
}

fn instances() -> RequestResult {
    let interface = |id: &str, is_first: bool| json!({"id": id, "ip": "10.0.0.9", "subnetId": "old-a", "isFirst": is_first, "publicAddress": null});
    let interfaces = [interface("eni-1", true), interface("eni-2", false)];
    let instance = json!({
        "id": "ins-1", "state": "RUNNING", "vpcId": "vpc-old", "subnetId": "old-a",
        "interfaces": interfaces,
    });
    RequestResult::responded("question/2", 200, json!({"instances": [instance]}))
}

#[test]
fn an_operation_is_begun_once_looked_at_and_begun_anew_when_it_has_failed() {
    let clone = clone_enis::clone_enis;
    let answers = vec![
        key(),
        vpc("vpc-old", "old-a", 0),
        vpc("vpc-new", "new-a", 1),
        instances(),
    ];
    let begins = entry(clone, &Output::new(), answers).unwrap();
    check(
        &begins,
        expect![[r#"
        key: secret get cloud-key
        eni-2: http POST https://cloud/interfaces
        Outcome::Again(None)
        {"plan":{"moves":[{"instance":"ins-1","subnet":"new-a","ip":"10.0.0.9","interfaces":[{"old":"eni-2","subnet":"new-a","ip":"10.0.0.9"}]}]},"objects":{"eni-2":{"asked":0}}}
    "#]],
    );
    // The answer was lost with the host: the same is asked for, under the same key.
    let again = entry(clone, &begins, vec![key()]).unwrap();
    assert_eq!(again.requests, begins.requests);
    let begun = RequestResult::responded("eni-2", 202, json!({"operation": "op-1"}));
    let looks = entry(clone, &begins, vec![key(), begun]).unwrap();
    check(
        &looks,
        expect![[r#"
        key: secret get cloud-key
        eni-2: http GET https://cloud/operations/op-1
        Outcome::Again(Some(2000))
        {"plan":{"moves":[{"instance":"ins-1","subnet":"new-a","ip":"10.0.0.9","interfaces":[{"old":"eni-2","subnet":"new-a","ip":"10.0.0.9"}]}]},"objects":{"eni-2":{"running":{"operation":"op-1","failures":0,"percent":0}}}}
    "#]],
    );
    let failed = json!({"state": "FAILED", "code": "AddressInUse", "message": "10.0.0.9 is taken"});
    let failed = RequestResult::responded("eni-2", 200, failed);
    let failed = entry(clone, &looks, vec![key(), failed]).unwrap();
    check(
        &failed,
        expect![[r#"
        Outcome::Failed(HandlerError { message: "10.0.0.9 is taken", fatal: false, retry-after: None, code: Some("AddressInUse") })
        {"plan":{"moves":[{"instance":"ins-1","subnet":"new-a","ip":"10.0.0.9","interfaces":[{"old":"eni-2","subnet":"new-a","ip":"10.0.0.9"}]}]},"objects":{"eni-2":{"asked":1}}}
    "#]],
    );
    let anew = entry(clone, &failed, vec![key()]).unwrap();
    check(
        &anew,
        expect![[r#"
        key: secret get cloud-key
        eni-2: http POST https://cloud/interfaces
        Outcome::Again(None)
        {"plan":{"moves":[{"instance":"ins-1","subnet":"new-a","ip":"10.0.0.9","interfaces":[{"old":"eni-2","subnet":"new-a","ip":"10.0.0.9"}]}]},"objects":{"eni-2":{"asked":1}}}
    "#]],
    );
    let made = json!({"state": "SUCCEEDED", "result": {"id": "eni-9", "ip": "10.0.0.9"}});
    let made = RequestResult::responded("eni-2", 200, made);
    let done = entry(clone, &looks, vec![key(), made]).unwrap();
    assert_eq!(done.outcome, Outcome::Done);
    expect![[r#"{"moves":[{"instance":"ins-1","subnet":"new-a","ip":"10.0.0.9","interfaces":[{"old":"eni-2","subnet":"new-a","ip":"10.0.0.9","new":"eni-9"}]}]}"#]].assert_eq(done.output.as_deref().unwrap_or_default());
}
