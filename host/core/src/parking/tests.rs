use expect_test::{Expect, expect};

use super::*;
use crate::backoff::DEFAULT_MAX_RETRY_AFTER;
use crate::fixtures::{at, kubernetes};
use crate::request::{HttpRequest, KubernetesVerb};

const CAP: Duration = DEFAULT_MAX_RETRY_AFTER;

/// What happens, one thing a line, each at its time in milliseconds.
#[derive(Clone, Copy)]
enum Happening {
    /// A request of this object is refused: its namespace, its name, the status, and the seconds of `Retry-After`.
    Refused(&'static str, &'static str, Option<u16>, Option<u64>),
    Succeeded,
    /// The probe that is due is answered, or refused with this wish.
    Probed(Result<(), Option<Duration>>),
}

use Happening::{Probed, Refused, Succeeded};

fn check(server: &Server, happenings: &[(i64, Happening)], expected: Expect) {
    let mut parking = Parking::new(7, CAP);
    let mut text = String::new();
    for (millis, happening) in happenings {
        let now = at(*millis);
        let (said, has_changed) = match happening {
            Refused(namespace, name, status, seconds) => {
                let refusal = Refusal {
                    object: format!("{namespace}/{name}"),
                    namespace: (*namespace).into(),
                    status: *status,
                    retry_after: seconds.map(Duration::from_secs),
                };
                let said = format!("{namespace}/{name} refused");
                (said, parking.observe_failure(server, refusal, now))
            }
            Succeeded => ("succeeded".into(), parking.observe_success(server, now)),
            Probed(answer) => {
                let due = parking.due(now);
                let changed = due.iter().map(|due| parking.probed(due, *answer, now));
                let changed = changed.fold(false, |any, one| any | one);
                (format!("probed {}", due.len()), changed)
            }
        };
        let unavailable: Vec<String> = parking
            .unavailable()
            .iter()
            .map(|(server, why)| format!("{server} {why:?}"))
            .collect();
        let next = parking.next_deadline().map_or("never".into(), |next| {
            next.since(now).as_millis().to_string()
        });
        text += &format!(
            "{millis}: {said}{} [{}] next probe in {next}\n",
            if has_changed { ", changed" } else { "" },
            unavailable.join(" ")
        );
    }
    expected.assert_eq(&text);
}

fn api() -> Server {
    Server::behind(SinkName::Kubernetes)
}

#[test]
fn an_unanswered_request_has_the_server_probed_at_once() {
    check(
        &api(),
        &[
            (0, Refused("a", "one", None, None)),
            (0, Probed(Err(None))),
            (0, Refused("a", "two", None, None)),
            (3000, Probed(Err(None))),
            (6000, Probed(Ok(()))),
        ],
        expect![[r#"
            0: a/one refused [] next probe in 0
            0: probed 1, changed [kubernetes Down] next probe in 2415
            0: a/two refused [kubernetes Down] next probe in 2415
            3000: probed 1 [kubernetes Down] next probe in 1975
            6000: probed 1, changed [] next probe in never
        "#]],
    );
}

#[test]
fn a_probe_that_is_answered_parks_nobody_and_is_not_repeated_within_its_period() {
    check(
        &api(),
        &[
            (0, Refused("a", "one", None, None)),
            (0, Probed(Ok(()))),
            (10, Refused("a", "one", None, None)),
            (20, Refused("b", "two", None, None)),
            (30, Refused("c", "three", None, None)),
            (2999, Probed(Ok(()))),
            (3000, Probed(Ok(()))),
        ],
        expect![[r#"
            0: a/one refused [] next probe in 0
            0: probed 1 [] next probe in never
            10: a/one refused [] next probe in 2990
            20: b/two refused [] next probe in 2980
            30: c/three refused [] next probe in 2970
            2999: probed 0 [] next probe in 1
            3000: probed 1 [] next probe in never
        "#]],
    );
}

#[test]
fn three_objects_of_two_namespaces_that_are_refused_alike_park_the_server() {
    let busy = |namespace, name| Refused(namespace, name, Some(429), Some(1));
    check(
        &api(),
        &[
            (0, busy("a", "one")),
            (10, busy("a", "two")),
            (20, busy("a", "three")),
            (30, busy("b", "one")),
            (4000, Probed(Ok(()))),
        ],
        expect![[r#"
            0: a/one refused [] next probe in never
            10: a/two refused [] next probe in never
            20: a/three refused [] next probe in never
            30: b/one refused, changed [kubernetes Refusing] next probe in 2050
            4000: probed 1, changed [] next probe in never
        "#]],
    );
}

#[test]
fn refusals_that_have_little_in_common_park_nobody() {
    let refused = |status| move |namespace, name| Refused(namespace, name, Some(status), Some(1));
    let (busy, gone) = (refused(429), refused(503));
    check(
        &api(),
        &[
            // One object, however often.
            (0, busy("a", "one")),
            (1, busy("a", "one")),
            (2, busy("a", "one")),
            // Of another kind.
            (3, gone("b", "two")),
            (4, gone("c", "three")),
            // Too late.
            (3100, busy("b", "four")),
            (3200, busy("b", "five")),
            // Others succeed.
            (3300, Succeeded),
            (3400, busy("a", "six")),
            (3500, busy("b", "seven")),
            (3600, busy("c", "eight")),
        ],
        expect![[r#"
            0: a/one refused [] next probe in never
            1: a/one refused [] next probe in never
            2: a/one refused [] next probe in never
            3: b/two refused [] next probe in never
            4: c/three refused [] next probe in never
            3100: b/four refused [] next probe in never
            3200: b/five refused [] next probe in never
            3300: succeeded [] next probe in never
            3400: a/six refused [] next probe in never
            3500: b/seven refused [] next probe in never
            3600: c/eight refused [] next probe in never
        "#]],
    );
}

#[test]
fn an_endpoint_is_parked_by_itself_for_a_probe_period() {
    let operation = Operation::Http(HttpRequest {
        method: "GET".into(),
        url: "https://hooks.example.com:8443/a".into(),
        headers: Vec::new(),
        body: None,
    });
    check(
        &Server::of(&operation),
        &[
            (0, Refused("a", "one", None, None)),
            (0, Refused("b", "two", None, None)),
            (0, Refused("b", "three", None, None)),
            (3000, Probed(Ok(()))),
        ],
        expect![[r#"
            0: a/one refused [] next probe in never
            0: b/two refused [] next probe in never
            0: b/three refused, changed [http hooks.example.com:8443 Refusing] next probe in 2415
            3000: probed 1, changed [] next probe in never
        "#]],
    );
}

#[test]
fn a_wish_to_be_left_alone_is_capped() {
    let age = Some(u64::from(u32::MAX));
    check(
        &api(),
        &[
            (0, Refused("a", "one", Some(429), age)),
            (0, Refused("b", "two", Some(429), age)),
            (0, Refused("b", "three", Some(429), age)),
            (3_600_000, Probed(Err(Some(Duration::MAX)))),
            (7_200_000, Probed(Ok(()))),
        ],
        expect![[r#"
            0: a/one refused [] next probe in never
            0: b/two refused [] next probe in never
            0: b/three refused, changed [kubernetes Refusing] next probe in 3600000
            3600000: probed 1, changed [kubernetes Down] next probe in 3600000
            7200000: probed 1, changed [] next probe in never
        "#]],
    );
}

#[test]
fn an_aggregated_api_is_a_server_of_its_own() {
    let mut table = String::new();
    for group in ["", "apps", "metrics.k8s.io"] {
        let mut request = kubernetes(KubernetesVerb::Get, "a");
        request.group = group.into();
        let server = Server::of(&Operation::Kubernetes(request));
        table += &format!("{group:?}: {server}, shared: {}\n", server.is_shared());
    }
    expect![[r#"
        "": kubernetes, shared: true
        "apps": kubernetes, shared: true
        "metrics.k8s.io": kubernetes metrics.k8s.io, shared: false
    "#]]
    .assert_eq(&table);
}

#[test]
fn the_number_of_servers_is_limited() {
    let mut parking = Parking::new(7, CAP);
    let host = |number: usize| Server {
        sink: SinkName::Http,
        host: number.to_string(),
    };
    let refusal = || Refusal {
        object: "a/one".into(),
        namespace: "a".into(),
        status: None,
        retry_after: None,
    };
    for number in 0..2 * MAX_SERVERS {
        parking.observe_failure(&host(number), refusal(), at(0));
    }
    assert_eq!(parking.servers.len(), MAX_SERVERS);
    parking.observe_failure(&host(0), refusal(), at(0));
    parking.observe_failure(&host(2 * MAX_SERVERS), refusal(), at(3000));
    assert_eq!(parking.servers.len(), 1);
}
