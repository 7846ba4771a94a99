//! What is true of every plan and of every set of results.

use super::*;

/// A request and what its sink answers. Names are given afterwards, so that none comes twice.
fn settled_request() -> impl Strategy<Value = (Request, Option<FaultKind>)> {
    let group = prop::option::weighted(0.4, prop::sample::select(vec!["g", "h"]));
    let of = prop::option::of(prop::sample::select(vec!["a", "b", "c"]));
    let on_error = prop::option::of(prop::sample::select(vec![
        OnError::Fail,
        OnError::CatchError,
        OnError::DropError,
    ]));
    let fault = prop::option::weighted(0.4, prop::sample::select(FaultKind::ALL.to_vec()));
    (0..4u8, group, of, on_error, any::<bool>(), fault).prop_map(
        |(what, group, of, on_error, bootstrap_dep, fault)| {
            let request = match what {
                0 => get("r"),
                1 => apply("r"),
                2 => put("r", "1"),
                _ => secret(SecretVerb::Get, "r"),
            };
            let request = with(request, |request| {
                request.group_by = group.map(Into::into);
                request.of = of.map(key);
                request.on_error = on_error;
                request.bootstrap_dep = bootstrap_dep;
            });
            (request, fault)
        },
    )
}

fn settled_requests() -> impl Strategy<Value = Vec<(Request, Option<FaultKind>)>> {
    prop::collection::vec(settled_request(), 0..10).prop_map(|mut settled| {
        for (n, (request, _)) in settled.iter_mut().enumerate() {
            request.name = format!("r{n}");
        }
        settled
    })
}

/// Where in the request list each name of the results stands.
fn place(name: &str) -> usize {
    name.trim_start_matches('r').parse().unwrap()
}

proptest! {
    #[test]
    fn every_result_is_seen_once_or_dropped_or_charged(
        settled in settled_requests(), is_last: bool, is_batch: bool,
    ) {
        let conclusion = concluded(&settled, is_last, is_batch);
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut keys: BTreeSet<&str> = BTreeSet::new();
        for (key, entry) in &conclusion.entries {
            prop_assert!(keys.insert(key), "the key {} twice", key);
            let members = match entry {
                ResultEntry::One(result) => {
                    prop_assert_eq!(key, &result.request_name);
                    std::slice::from_ref(result)
                }
                ResultEntry::Group(members) => {
                    let places: Vec<usize> =
                        members.iter().map(|member| place(&member.request_name)).collect();
                    prop_assert!(places.is_sorted(), "{} is out of order: {:?}", key, places);
                    members.as_slice()
                }
            };
            for member in members {
                let (request, _) = &settled[place(&member.request_name)];
                prop_assert_eq!(request.group_by.as_ref().unwrap_or(&request.name), key);
                prop_assert!(seen.insert(&member.request_name), "{} twice", member.request_name);
            }
        }
        for (request, fault) in &settled {
            let is_charged =
                request.of.as_ref().is_some_and(|of| conclusion.charged.contains_key(of));
            let is_dropped = fault.is_some()
                && request.effective_on_error(BatchErrorStrategy::CatchError) == OnError::DropError;
            prop_assert_eq!(seen.contains(&*request.name), !is_charged && !is_dropped);
        }
        let first_member = |key: &String| {
            settled.iter().position(|(request, _)| {
                let is_charged =
                    request.of.as_ref().is_some_and(|of| conclusion.charged.contains_key(of));
                !is_charged && request.group_by.as_ref().unwrap_or(&request.name) == key
            })
        };
        let places: Vec<_> = conclusion.entries.iter().map(|(key, _)| first_member(key)).collect();
        prop_assert!(places.is_sorted(), "{:?}", places);
    }

    #[test]
    fn a_failure_is_found_when_there_is_one(
        settled in settled_requests(), is_last: bool, is_batch: bool,
    ) {
        let conclusion = concluded(&settled, is_last, is_batch);
        let uncaught = |request: &Request, fault: FaultKind| {
            fault != FaultKind::NotSent
                && (fault.is_outage() || match request.effective_on_error(BatchErrorStrategy::CatchError) {
                    OnError::Fail => true,
                    OnError::CatchError => is_last,
                    OnError::DropError => false,
                })
        };
        let strength = |reaction| match reaction {
            Reaction::Resend => 0,
            Reaction::Restart => 1,
            Reaction::Park => 2,
            Reaction::Fail => 3,
        };
        let mut common = Vec::new();
        let mut charged: BTreeMap<ObjectRef, Vec<u8>> = BTreeMap::new();
        for (request, fault) in &settled {
            let Some(fault) = fault.filter(|fault| uncaught(request, *fault)) else { continue };
            match &request.of {
                Some(of) if is_batch => {
                    charged.entry(of.clone()).or_default().push(strength(fault.reaction()));
                }
                _ => common.push(strength(fault.reaction())),
            }
        }
        let found = conclusion.failure.as_ref().map(|failure| strength(failure.reaction));
        prop_assert_eq!(found, common.into_iter().max());
        let found: BTreeMap<ObjectRef, u8> = conclusion
            .charged
            .iter()
            .map(|(of, failure)| (of.clone(), strength(failure.reaction)))
            .collect();
        let strongest = charged.into_iter().map(|(of, all)| (of, all.into_iter().max().unwrap()));
        prop_assert_eq!(found, strongest.collect::<BTreeMap<_, _>>());
    }

    #[test]
    fn what_is_kept_is_a_success_of_the_same_change(
        before in settled_requests(), now in settled_requests(),
    ) {
        let sent: Vec<Request> = before.iter().map(|(request, _)| request.clone()).collect();
        let earlier = free(requests(sent));
        let results: Vec<RequestResult> = before
            .iter()
            .map(|(request, fault)| match fault {
                None => answered(request),
                Some(kind) => failed_with(request, *kind),
            })
            .collect();
        let mut kept = Kept::new();
        keep_successes(&earlier, &results, &mut kept);
        let everything = Capabilities::everything();
        let asked: Vec<Request> = now.into_iter().map(|(request, _)| request).collect();
        let plan = planned(requests(asked), &kept, &everything, &everything);
        for (n, step) in plan.steps.iter().enumerate() {
            let twin = before.get(n).filter(|(twin, fault)| {
                fault.is_none()
                    && twin.operation == step.request.operation
                    && twin.operation.is_mutating()
            });
            match (&step.action, twin) {
                (PlannedAction::Keep(result), Some((twin, _))) => {
                    prop_assert_eq!(result, &answered(twin));
                }
                (PlannedAction::Send(_), None) => {}
                (action, twin) => prop_assert!(false, "{:?} for {:?}", action, twin),
            }
        }
    }

    #[test]
    fn the_waves_hold_every_step_once_and_the_order_of_each(settled in settled_requests()) {
        let asked: Vec<Request> = settled.into_iter().map(|(request, _)| request).collect();
        let plan = free(requests(asked));
        let waves = plan.waves();
        prop_assert!(waves.len() <= 2);
        prop_assert!(waves.iter().all(|wave| !wave.is_empty() && wave.is_sorted()));
        let is_first = |index: &usize| plan.steps[*index].request.bootstrap_dep;
        let sent: Vec<usize> = waves.concat();
        prop_assert!(sent.is_sorted_by_key(|index| !is_first(index)));
        let all: BTreeSet<usize> = sent.iter().copied().collect();
        prop_assert_eq!(sent.len(), plan.steps.len());
        prop_assert_eq!(all, (0..plan.steps.len()).collect::<BTreeSet<_>>());
    }
}
