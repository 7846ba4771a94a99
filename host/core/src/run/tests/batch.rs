//! Objects that leave, batches that are halved.

use super::*;

/// Of every object that is left, a `put`, a status and an Event, all named after it.
fn for_each(call: &Call, left: &[&str]) -> HandlerOutput {
    let ResourceObject::Batch(objects) = &call.input.resource_object else {
        panic!("no batch")
    };
    assert_eq!(objects.len(), left.len());
    HandlerOutput {
        statuses: left
            .iter()
            .map(|name| StatusUpdate {
                of: Some(key(name)),
                status: document(&format!("{{{name:?}: 1}}")),
            })
            .collect(),
        events: left
            .iter()
            .map(|name| Event {
                of: Some(key(name)),
                ..event(name)
            })
            .collect(),
        ..asks(
            left.iter()
                .map(|name| of(put(name, "1"), name))
                .collect::<Vec<_>>(),
        )
    }
}

#[test]
fn an_object_that_fails_leaves_its_batch_and_the_others_go_on() {
    let handler = |call: &Call| {
        Ok(match call.handler.as_str() {
            "root" => for_each(call, &["a", "b", "c"]),
            _ => for_each(call, &["a", "c"]),
        })
    };
    let mut stage = Stage::new(in_batches(configurator()), &["a", "b", "c"], handler)
        .failing(&[("b", &[FaultKind::ResourcePermission])]);
    stage.check(expect![[r#"
        root (attempt 1)
          a
          b: ResourcePermission
          c
        ns/b leaves, b: ResourcePermission
        write (attempt 1) a:ok c:ok
          a
          c
        succeeded
    "#]]);
    assert_eq!(stage.departed.len(), 1);
    assert_eq!(stage.departed[0].member.uid, "b-uid");
    assert!(
        stage.run.take_departed().is_empty(),
        "departures are taken once"
    );
    assert_eq!(
        stage.statuses(),
        [r#"{"a": 1}"#, r#"{"c": 1}"#, r#"{"a": 1}"#, r#"{"c": 1}"#]
    );
    assert_eq!(stage.events(), ["a", "c", "a", "c"]);
}

#[test]
fn a_batch_that_everybody_has_left_is_over() {
    let handler = |call: &Call| Ok(for_each(call, &["a", "b"]));
    let mut stage = Stage::new(in_batches(configurator()), &["a", "b"], handler).failing(&[
        ("a", &[FaultKind::ResourceConflict]),
        ("b", &[FaultKind::ResourceMutation]),
    ]);
    stage.check(expect![[r#"
        root (attempt 1)
          a: ResourceConflict
          b: ResourceMutation
        ns/a leaves, a: ResourceConflict
        ns/b leaves, b: ResourceMutation
        succeeded
    "#]]);
    assert!(stage.run.members().is_empty());
    assert_eq!((stage.statuses().len(), stage.events().len()), (0, 0));
}

#[test]
fn a_member_that_is_refused_for_now_leaves_and_the_others_go_on() {
    let handler = |call: &Call| {
        Ok(match call.handler.as_str() {
            "root" => for_each(call, &["a", "b"]),
            _ => nothing(),
        })
    };
    let mut stage = Stage::new(in_batches(configurator()), &["a", "b"], handler)
        .failing(&[("b", &[FaultKind::ConfigstoreUnavailable])]);
    stage.check(expect![[r#"
        root (attempt 1)
          a
          b: ConfigstoreUnavailable
        ns/b leaves, b: ConfigstoreUnavailable
        write (attempt 1) a:ok
        succeeded
    "#]]);
}

#[test]
fn a_batch_whose_members_are_all_refused_for_now_waits_as_a_whole() {
    let handler = |call: &Call| {
        Ok(match call.handler.as_str() {
            "root" => for_each(call, &["a", "b"]),
            _ => nothing(),
        })
    };
    let mut stage = Stage::new(in_batches(configurator()), &["a", "b"], handler).failing(&[
        ("a", &[FaultKind::ConfigstoreUnavailable]),
        ("b", &[FaultKind::ConfigstoreUnavailable]),
    ]);
    stage.check(expect![[r#"
        root (attempt 1)
          a: ConfigstoreUnavailable
          b: ConfigstoreUnavailable
        park at configstore for 575 ms, a: ConfigstoreUnavailable
        root (attempt 1)
          a
          b
        write (attempt 1) a:ok b:ok
        succeeded
    "#]]);
    assert!(stage.departed.is_empty());
}

#[test]
fn a_failure_that_is_nobodys_halves_the_batch() {
    let shared = |_: &Call| Ok(asks([of(put("a", "1"), "a"), put("shared", "1")]));
    for kind in [
        FaultKind::ResourceMutation,
        FaultKind::ResourceConflict,
        FaultKind::ResourceGeneric,
    ] {
        let script: &[(&str, &[FaultKind])] = &[("shared", &[kind])];
        let mut batch = Stage::new(in_batches(configurator()), &["a", "b"], shared).failing(script);
        assert!(matches!(batch.play(), Finish::Split { .. }));
        assert_eq!((batch.run.members().len(), batch.run.failures()), (2, 0));

        let mut alone = Stage::new(in_batches(phases(&["root"])), &["a"], shared).failing(script);
        assert!(!matches!(alone.play(), Finish::Split { .. }));
        assert_eq!(
            alone.run.failures(),
            1,
            "a batch of one follows the rules of one object"
        );
    }
}

#[test]
fn one_who_is_left_alone_follows_the_rules_of_one_object() {
    let handler = |call: &Call| {
        let ResourceObject::Batch(objects) = &call.input.resource_object else {
            panic!("no batch")
        };
        let a = (objects.len() == 2).then(|| of(put("a", "1"), "a"));
        Ok(asks(
            a.into_iter()
                .chain([of(put("b", "1"), "b"), put("shared", "1")])
                .collect::<Vec<_>>(),
        ))
    };
    let mut stage = Stage::new(in_batches(phases(&["root"])), &["a", "b"], handler).failing(&[
        ("a", &[FaultKind::ResourceMutation]),
        ("shared", &[FaultKind::ResourceMutation]),
    ]);
    stage.check(expect![[r#"
        root (attempt 1)
          a: ResourceMutation
          b
          shared: ResourceMutation
        ns/a leaves, a: ResourceMutation
        resend after 575 ms, shared: ResourceMutation
        root again (attempt 2)
          keep b
          shared
        succeeded
    "#]]);
}

#[test]
fn an_object_whose_requests_were_not_sent_is_tried_again() {
    let handler = |call: &Call| Ok(serial(for_each(call, &["a", "b", "c"])));
    let mut stage = Stage::new(in_batches(configurator()), &["a", "b", "c"], handler)
        .failing(&[("b", &[FaultKind::ResourceMutation])]);
    stage.check(expect![[r#"
        root (attempt 1)
          a
          b: ResourceMutation
          c: NotSent
        ns/b leaves, b: ResourceMutation
        split, b: ResourceMutation
    "#]]);
    let left: Vec<&str> = stage
        .run
        .members()
        .iter()
        .map(|it| it.key.name.as_str())
        .collect();
    assert_eq!(left, ["a", "c"]);
    assert_eq!((stage.statuses().len(), stage.events().len()), (0, 0));
}

#[test]
fn the_others_go_on_when_all_of_their_requests_were_sent() {
    let handler = |call: &Call| {
        Ok(match call.handler.as_str() {
            "root" => serial(asks([
                of(put("b", "1"), "b"),
                of(put("a", "1"), "a"),
                of(put("a2", "1"), "a"),
            ])),
            _ => nothing(),
        })
    };
    let mut stage = Stage::new(in_batches(configurator()), &["a", "b"], handler)
        .failing(&[("a", &[FaultKind::ResourceMutation])]);
    stage.check(expect![[r#"
        root (attempt 1)
          b
          a: ResourceMutation
          a2: NotSent
        ns/a leaves, a: ResourceMutation
        write (attempt 1) b:ok
        succeeded
    "#]]);
}

#[test]
fn what_one_object_may_not_do_is_tried_again_without_it() {
    let mut start = start(in_batches(configurator()), &["a", "b"]);
    Arc::make_mut(&mut start.configurator)
        .capabilities
        .secretstore
        .clear();
    let handler = |_: &Call| {
        Ok(asks([
            of(secret(SecretVerb::Get, "s"), "a"),
            of(put("b", "1"), "b"),
        ]))
    };
    Stage::of(start, handler).check(expect![[r#"
        root (attempt 1)
        ns/a leaves, s: ResourcePermission
        split, s: ResourcePermission
    "#]]);
}

#[test]
fn the_culprit_of_a_batch_ends_up_alone() {
    let names: Vec<String> = (0..100).map(|n| format!("m{n:02}")).collect();
    let mut waiting = vec![names.clone()];
    let (mut done, mut failed, mut runs) = (Vec::new(), Vec::new(), 0);
    while let Some(batch) = waiting.pop() {
        runs += 1;
        let members: Vec<&str> = batch.iter().map(String::as_str).collect();
        let has_culprit = members.contains(&"m37");
        let mut stage = Stage::new(in_batches(configurator()), &members, |_| {
            if has_culprit {
                Err(CallFault::Trap {
                    message: "m37".into(),
                })
            } else {
                Ok(nothing())
            }
        });
        match stage.play() {
            Finish::Split { .. } => {
                let (left, right) = batch.split_at(batch.len() / 2);
                waiting.extend([left.to_vec(), right.to_vec()]);
            }
            Finish::Succeeded => done.extend(batch),
            _ => failed.extend(batch),
        }
    }
    assert_eq!(failed, ["m37"]);
    assert_eq!(done.len(), 99);
    assert!(runs <= 2 * 7 + 1, "{runs} runs for a batch of 100");
}
