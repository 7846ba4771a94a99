//! Requests that wait for one another.

use super::*;

/// A request that depends on these.
fn after(request: Request, names: &[&str]) -> Request {
    with(request, |request| {
        request.depends_on = names.iter().map(|name| (*name).to_owned()).collect();
    })
}

fn graph(requests: Vec<Request>) -> HandlerOutput {
    let mut output = asks(requests);
    output.requests.execute_strategy = ExecuteStrategy::Graph;
    output
}

/// The root phase sends these requests as a graph; the next one sends nothing.
fn stage<'a>(requests: Vec<Request>) -> Stage<'a> {
    Stage::new(configurator(), &["x"], move |call: &Call| {
        Ok(match call.handler.as_str() {
            "root" => graph(requests.clone()),
            _ => nothing(),
        })
    })
}

fn unready<'a>(mut stage: Stage<'a>, names: &[(&str, u32)]) -> Stage<'a> {
    let names = names
        .iter()
        .map(|(name, times)| ((*name).to_owned(), *times));
    stage.sinks.unready = names.collect();
    stage
}

#[test]
fn requests_follow_those_that_they_depend_on() {
    let requests = vec![
        after(put("d", "1"), &["b", "c"]),
        after(apply("b"), &["a"]),
        after(get("c"), &["a"]),
        put("a", "1"),
    ];
    stage(requests).check(expect![[r#"
        root (attempt 1)
          a
          b
          c
          d
        write (attempt 1) d:ok b:ok c:ok a:ok
        succeeded
    "#]]);
}

#[test]
fn a_run_rests_until_an_object_is_ready_and_calls_no_handler_meanwhile() {
    let requests = vec![apply("a"), after(put("b", "1"), &["a"]), put("c", "1")];
    let mut stage = unready(stage(requests), &[("a", 7)]);
    stage.check(expect![[r#"
        root (attempt 1)
          a
          a is not ready
          c
        rest for 1000 ms, request "a": it is not ready
          a is not ready
          keep c
        rest for 2000 ms, request "a": it is not ready
          a is not ready
          keep c
        rest for 4000 ms, request "a": it is not ready
          a is not ready
          keep c
        rest for 8000 ms, request "a": it is not ready
          a is not ready
          keep c
        rest for 16000 ms, request "a": it is not ready
          a is not ready
          keep c
        rest for 30000 ms, request "a": it is not ready
          a is not ready
          keep c
        rest for 30000 ms, request "a": it is not ready
          b
          keep c
        write (attempt 1) a:ok b:ok c:ok
        succeeded
    "#]]);
    assert_eq!(stage.calls.len(), 2);
}

#[test]
fn each_wait_begins_anew_when_something_has_become_ready() {
    let requests = vec![
        apply("a"),
        after(apply("b"), &["a"]),
        after(put("c", "1"), &["b"]),
    ];
    unready(stage(requests), &[("a", 2), ("b", 2)]).check(expect![[r#"
        root (attempt 1)
          a
          a is not ready
        rest for 1000 ms, request "a": it is not ready
          a is not ready
        rest for 2000 ms, request "a": it is not ready
          b
          b is not ready
        rest for 1000 ms, request "b": it is not ready
          keep a
          b is not ready
        rest for 2000 ms, request "b": it is not ready
          keep a
          c
        write (attempt 1) a:ok b:ok c:ok
        succeeded
    "#]]);
}

#[test]
fn what_depends_on_a_failure_is_not_sent_and_other_branches_are() {
    let requests = vec![
        put("a", "1"),
        after(put("b", "1"), &["a"]),
        after(put("c", "1"), &["b"]),
        put("d", "1"),
        after(put("e", "1"), &["d"]),
    ];
    let mut stage = stage(requests).failing(&[("b", &[FaultKind::ResourceGeneric])]);
    stage.check(expect![[r#"
        root (attempt 1)
          a
          b: ResourceGeneric
          d
          e
        failed, 1 failed, b: ResourceGeneric
    "#]]);
}

#[test]
fn a_failure_ends_the_wait_and_a_retry_sends_nothing_twice() {
    let requests = vec![
        apply("a"),
        after(put("b", "1"), &["a"]),
        put("c", "1"),
        after(put("d", "1"), &["c"]),
    ];
    let stage = stage(requests).failing(&[("c", &[FaultKind::ResourceMutation])]);
    unready(stage, &[("a", 2)]).check(expect![[r#"
        root (attempt 1)
          a
          a is not ready
          c: ResourceMutation
        resend after 723 ms, c: ResourceMutation
        root again (attempt 2)
          a is not ready
          c
          d
        rest for 1000 ms, request "a": it is not ready
          b
          keep c
          keep d
        write again (attempt 2) a:ok b:ok c:ok d:ok
        succeeded
    "#]]);
}

#[test]
fn what_depends_on_a_failure_that_is_caught_is_caught_with_it() {
    let requests = vec![
        with(put("a", "1"), |request| {
            request.on_error = Some(OnError::CatchError);
        }),
        after(put("b", "1"), &["a"]),
        with(after(put("c", "1"), &["b"]), |request| {
            request.on_error = Some(OnError::DropError);
        }),
        apply("d"),
        after(put("e", "1"), &["d"]),
    ];
    let stage = stage(requests).failing(&[("a", &[FaultKind::ResourceGeneric])]);
    unready(stage, &[("d", 1)]).check(expect![[r#"
        root (attempt 1)
          a: ResourceGeneric
          d
          d is not ready
        rest for 1000 ms, request "d": it is not ready
          keep a
          e
        write (attempt 1) a:ResourceGeneric b:NotSent d:ok e:ok
        succeeded
    "#]]);
}

#[test]
fn statuses_and_events_are_published_while_the_run_rests() {
    let mut stage = Stage::new(configurator(), &["x"], |call: &Call| {
        let mut output = match call.handler.as_str() {
            "root" => graph(vec![apply("a"), after(put("b", "1"), &["a"])]),
            _ => nothing(),
        };
        output.statuses = vec![status(&format!("{{{:?}: 1}}", call.handler))];
        output.events = vec![event(&call.handler)];
        Ok(output)
    });
    stage.sinks.unready.insert("a".to_owned(), 1);
    while stage.text.lines().all(|line| !line.starts_with("rest")) {
        stage.advance();
    }
    assert_eq!(stage.statuses(), [r#"{"root": 1}"#]);
    assert_eq!(stage.events(), ["root"]);
    stage.play();
    assert_eq!(stage.statuses(), [r#"{"write": 1}"#]);
    assert_eq!(stage.events(), ["write"]);
}
