//! How a run goes through its phases, and what it is called.

use super::*;

#[test]
fn each_phase_gets_the_results_and_arguments_of_the_one_before() {
    let grouped = |request| with(request, |request| request.group_by = Some("layers".into()));
    let mut stage = Stage::new(phases(&["root", "write", "check"]), &["a"], |call| {
        Ok(match call.handler.as_str() {
            "root" => HandlerOutput {
                pass_through_args: vec![("x".into(), document("1")), ("y".into(), document("[2]"))],
                ..asks([
                    grouped(get("node")),
                    secret(SecretVerb::Get, "s"),
                    grouped(get("space")),
                ])
            },
            "write" => HandlerOutput {
                pass_through_args: vec![("z".into(), document("3"))],
                ..asks([put("value", "1")])
            },
            _ => nothing(),
        })
    })
    .failing(&[("space", &[FaultKind::ResourceNotFound])]);
    stage.check(expect![[r#"
        root (attempt 1)
          node
          s
          space: ResourceNotFound
        write (attempt 1) x=1 y=[2] layers[node:ok space:ResourceNotFound] s:ok
          value
        check (attempt 1) z=3 value:ok
        succeeded
    "#]]);
    assert_eq!(stage.run.phase(), "check");
    let contexts = stage.calls.iter().map(|call| &call.input.context);
    let facts: String = contexts
        .map(|it| {
            format!(
                "{} {} {} entry {} at {} {}\n",
                it.configurator, it.phase, it.node, it.entry, it.now, it.parameters
            )
        })
        .collect();
    expect![[r#"
        c root root entry 1 at 1970-01-01T00:00:00.000Z {}
        c write write entry 1 at 1970-01-01T00:00:02.000Z {}
        c check check entry 1 at 1970-01-01T00:00:04.000Z {}
    "#]]
    .assert_eq(&facts);
}

#[test]
fn a_handler_that_asks_for_nothing_passes_on_at_once() {
    let handler = |call: &Call| {
        Ok(HandlerOutput {
            pass_through_args: vec![(call.handler.clone(), document("1"))],
            ..nothing()
        })
    };
    Stage::new(configurator(), &["a"], handler).check(expect![[r#"
        root (attempt 1)
        write (attempt 1) root=1
        succeeded
    "#]]);
}

#[test]
fn the_deletion_chain_has_phases_of_its_own() {
    let deletion = RunStart {
        chain: Chain::Deletion,
        ..start(configurator(), &["a"])
    };
    let mut stage = Stage::of(deletion, |_| Ok(asks([put("gone", "1")])));
    stage.check(expect![[r#"
        cleanup (attempt 1)
          gone
        succeeded
    "#]]);
    assert_eq!(stage.run.chain(), Chain::Deletion);
}

#[test]
fn a_chain_without_phases_and_a_run_without_objects_have_succeeded() {
    let single = start(configurator(), &[]);
    let batch = start(in_batches(configurator()), &[]);
    let mut no_phases = RunStart {
        chain: Chain::Deletion,
        ..start(configurator(), &["a"])
    };
    Arc::make_mut(&mut no_phases.configurator)
        .deletion
        .phases
        .clear();
    for start in [single, batch, no_phases] {
        assert_eq!(Run::start(start, at(0)).1, Step::Finish(Finish::Succeeded));
    }
}

#[test]
fn a_handler_gets_one_object_or_a_batch() {
    let one = Stage::new(configurator(), &["a"], |_| Ok(nothing()));
    let Some(Step::Call(call)) = one.step else {
        panic!("a run begins with a call")
    };
    assert!(matches!(call.input.resource_object, ResourceObject::One(_)));

    let batch = Stage::new(in_batches(configurator()), &["a"], |_| Ok(nothing()));
    let Some(Step::Call(call)) = batch.step else {
        panic!("a run begins with a call")
    };
    assert!(matches!(&call.input.resource_object, ResourceObject::Batch(list) if list.len() == 1));
}

#[test]
fn readiness_comes_first_and_a_failure_there_stops_the_rest() {
    let first = |name: &str| with(put(name, "1"), |request| request.bootstrap_dep = true);
    let handler = |_: &Call| Ok(asks([put("late", "1"), first("early"), first("other")]));
    let mut stage = Stage::new(phases(&["root"]), &["a"], handler)
        .failing(&[("early", &[FaultKind::ResourceMutation])]);
    stage.check(expect![[r#"
        root (attempt 1)
          early: ResourceMutation
          other
          late: NotSent
        resend after 752 ms, early: ResourceMutation
        root again (attempt 2)
          early
          keep other
          late
        succeeded
    "#]]);
}

#[test]
fn a_run_is_named_by_what_it_is_about() {
    let id = |start: RunStart| Run::start(start, at(0)).0.id().to_owned();
    let two = || start(in_batches(configurator()), &["a", "b"]);
    let base = id(two());
    assert_eq!(base.len(), 32);
    assert!(
        base.bytes()
            .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
    );

    let mut later = two();
    later.tries.failures = 7;
    later.members[0].event = WatchEvent::Resync;
    Arc::make_mut(&mut later.configurator).generation += 1;
    assert_eq!(Run::start(later, at(99)).0.id(), base);

    let changes: [fn(&mut RunStart); 5] = [
        |start| start.chain = Chain::Deletion,
        |start| start.members[1].content = content(1),
        |start| start.members[1].uid = "new".into(),
        |start| drop(start.members.pop()),
        |start| Arc::make_mut(&mut start.configurator).uid = "new".into(),
    ];
    let mut ids: BTreeSet<String> = changes
        .into_iter()
        .map(|change| {
            let mut changed = two();
            change(&mut changed);
            id(changed)
        })
        .collect();
    ids.insert(base);
    assert_eq!(ids.len(), 6, "two different runs have one name");
}

#[test]
fn chance_is_of_the_run_and_the_phase() {
    let seeds = |name: &str| {
        let mut stage = Stage::new(configurator(), &[name], |_| Ok(nothing()));
        stage.play();
        stage
            .calls
            .iter()
            .map(|call| call.input.context.seed)
            .collect::<Vec<_>>()
    };
    assert_eq!(seeds("a"), seeds("a"));
    let all: BTreeSet<u64> = [seeds("a"), seeds("b")].concat().into_iter().collect();
    assert_eq!(all.len(), 4);
}

#[test]
fn two_phases_do_not_apply_to_one_object() {
    let handler = |call: &Call| Ok(asks([apply("x"), apply(&call.handler)]));
    let mut stage = Stage::new(configurator(), &["a"], handler);
    let Finish::Failed { failure, .. } = stage.check(expect![[r#"
        root (attempt 1)
          x
          root
        write (attempt 1) x:ok root:ok
        failed, 1 failed, the handler: ResourceGeneric
    "#]]) else {
        panic!("refused")
    };
    expect![[r#"the output is invalid: the request "x" applies to configmaps ns/x, which phase "root" of this run has applied to"#]].assert_eq(&failure.fault.message);
}

#[test]
fn a_phase_that_is_called_again_may_apply_again() {
    let handler = |call: &Call| Ok(asks([apply(&call.handler), get("seen")]));
    let mut stage = Stage::new(configurator(), &["a"], handler)
        .failing(&[("seen", &[FaultKind::ResourceNotFound])]);
    assert_eq!(stage.play(), Finish::Succeeded);
}

#[test]
fn one_phase_applies_to_an_object_and_the_next_to_its_status() {
    let handler = |call: &Call| {
        let mut request = crate::fixtures::kubernetes(KubernetesVerb::Apply, "x");
        request.subresource = (call.handler != "root").then(|| "status".into());
        Ok(asks([Request::new("r", Operation::Kubernetes(request))]))
    };
    let mut stage = Stage::new(configurator(), &["a"], handler);
    assert_eq!(stage.play(), Finish::Succeeded);
}
