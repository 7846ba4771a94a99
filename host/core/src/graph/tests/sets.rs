//! Sets from their first plan to the last, step by step.

use std::time::Duration;

use expect_test::{Expect, expect};

use super::server::{Server, entry, graph, key};
use crate::graph::deletion::TerminationPolicy;
use crate::graph::entry::{Entry, OnDelete, OnExisting, OnImmutable, Orders, Provides};
use crate::graph::member::MemberKey;
use crate::graph::observation::{Found, Health, MemberOwner, Rejection, RejectionKind};
use crate::graph::plan::{Pruning, SetState};
use crate::graph::{Graph, MAX_DEPENDENCIES};
use crate::time::Timestamp;

#[expect(clippy::needless_pass_by_value, reason = "as `expect!` is used")]
#[track_caller]
fn check(actual: String, expected: Expect) {
    expected.assert_eq(&actual);
}

fn with(entries: Vec<Entry>) -> Graph {
    Graph::new(entries, &Orders::default()).unwrap()
}

fn groups(groups: &[&str]) -> Vec<Vec<String>> {
    let words = |group: &&str| group.split_whitespace().map(str::to_owned).collect();
    groups.iter().map(words).collect()
}

fn rejection(kind: RejectionKind) -> Rejection {
    Rejection {
        kind,
        message: "the server says no".to_owned(),
    }
}

// ---- Graph ----

#[test]
fn entries_that_form_no_graph_are_refused() {
    let check = |entries: &[&str], orders: &Orders, expected: Expect| {
        let entries = entries.iter().map(|text| entry(text)).collect();
        let error = Graph::new(entries, orders).unwrap_err();
        expected.assert_eq(&error.to_string());
    };
    let none = Orders::default();
    check(
        &["a: b", "b: a"],
        &none,
        expect![[r#"entries depend on one another in a circle: "a" → "b" → "a""#]],
    );
    check(
        &["a: c"],
        &none,
        expect![[r#""a" depends on "c", and no entry has that name"#]],
    );
    let order = |terminate: &[&str]| Orders {
        terminate: groups(terminate),
        ..Orders::default()
    };
    check(
        &["a", "b"],
        &order(&["a", "c"]),
        expect![[r#"the order `terminate` names "c", and no entry has that name"#]],
    );
    check(
        &["a", "b"],
        &order(&["a b", "a"]),
        expect![[r#"the order `terminate` names "a" twice"#]],
    );
    check(
        &["a", "between: a", "b: between"],
        &order(&["a", "b"]),
        expect![[
            r#"the order `terminate` contradicts the dependencies of entries outside it: "a" → "between" → "b" → "a""#
        ]],
    );
}

#[test]
fn two_entries_for_one_member_are_refused() {
    let twin = Entry {
        name: "twin".to_owned(),
        ..entry("a")
    };
    let error = Graph::new(vec![entry("a"), twin], &Orders::default()).unwrap_err();
    check(
        error.to_string(),
        expect![[r#"the entries "a" and "twin" both describe ConfigMap shop/a"#]],
    );
}

#[test]
fn an_order_cannot_make_more_dependencies_than_memory_allows() {
    let side = 1 + MAX_DEPENDENCIES.isqrt();
    let names: Vec<String> = (0..2 * side).map(|number| number.to_string()).collect();
    let entries = names.iter().map(|name| entry(name)).collect();
    let orders = Orders {
        provision: names.chunks(side).map(<[String]>::to_vec).collect(),
        ..Orders::default()
    };
    let error = Graph::new(entries, &orders).unwrap_err();
    check(
        error.to_string(),
        expect![
            "the entries have more than 1000000 dependencies; declare fewer, or put fewer entries into the groups of an order"
        ],
    );
}

#[test]
fn an_empty_set_is_ready() {
    check(
        Server::default().run(&graph(&[])),
        expect![[r#"
        ready
    "#]],
    );
}

// ---- Creation ----

#[test]
fn members_are_created_after_what_they_depend_on() {
    let graph = graph(&["web: db cache", "db", "cache", "ingress: web"]);
    let mut server = Server::default();
    check(
        server.run(&graph),
        expect![[r#"
        observe web db cache ingress
        record web db cache ingress
        create db cache
        confirm db cache; create web
        confirm web; create ingress
        confirm ingress
        ready
    "#]],
    );
    // A second plan finds nothing to do, and neither does another host.
    check(
        server.run(&graph),
        expect![[r#"
        ready
    "#]],
    );
    server.restart();
    check(
        server.run(&graph),
        expect![[r#"
        observe web db cache ingress
        ready
    "#]],
    );
}

#[test]
fn no_more_actions_than_allowed_run_side_by_side() {
    let mut server = Server {
        parallel: 2,
        ..Server::default()
    };
    check(
        server.run(&graph(&["a", "b", "c"])),
        expect![[r#"
        observe a b
        record a b; observe c
        record c; create a b
        confirm a b; create c
        confirm c
        ready
    "#]],
    );
    server.restart();
    // Actions that are under way count.
    server.observation("a").is_busy = true;
    let plan = server.plan(&graph(&["a", "b", "c"]));
    assert_eq!(plan.actions.len(), 1, "{plan:?}");
}

/// A CustomResourceDefinition, an object of its kind, a Namespace and an object in it. Nothing declares a dependency.
fn without_dependencies() -> Vec<Entry> {
    let object = |name: &str, group: &str, kind: &str, namespace: &str| Entry {
        key: MemberKey::Kubernetes {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        },
        ..entry(name)
    };
    let definition = Provides::Kind {
        group: "shop.example".to_owned(),
        kind: "Widget".to_owned(),
    };
    vec![
        object("widget", "shop.example", "Widget", "other"),
        entry("config"),
        Entry {
            provides: Some(Provides::Namespace("shop".to_owned())),
            ..object("shop", "", "Namespace", "")
        },
        Entry {
            provides: Some(definition),
            ..object(
                "widgets",
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                "",
            )
        },
    ]
}

#[test]
fn definitions_and_namespaces_come_before_what_needs_them() {
    let mut server = Server::default();
    check(
        server.run(&with(without_dependencies())),
        expect![[r#"
        observe widget config shop widgets
        record widget config shop widgets
        create shop widgets
        confirm shop widgets; create widget config
        confirm widget config
        ready
    "#]],
    );
    check(
        server.delete(),
        expect![[r#"
        delete config widget
        forget config widget
        delete shop widgets
        forget shop widgets
        complete
    "#]],
    );
}

#[test]
fn a_kind_that_is_not_served_is_awaited_only_if_its_definition_is_an_entry() {
    let mut entries = without_dependencies();
    let widget = entries[0].key.clone();
    let mut server = Server::default();
    server.run(&with(entries.clone()));
    server.observations.get_mut(&widget).unwrap().found = Found::NoKind;
    check(
        server.run(&with(entries.clone())),
        expect![[r#"
            progressing
              widget: waiting: the API server does not serve the kind of Widget.shop.example other/widget yet
        "#]],
    );
    entries.pop();
    check(
        server.run(&with(entries.clone())),
        expect![[r#"
            remove widgets
            failed
              widget: failed: the API server does not serve the kind of Widget.shop.example other/widget; install its CustomResourceDefinition
              - widgets: Held
        "#]],
    );
    // An object of a kind that has disappeared is gone.
    server.version = 2;
    entries.remove(0);
    check(
        server.run(&with(entries)),
        expect![[r#"
        remove widget; mark widgets
        delete widgets
        forget widgets
        forget widget
        ready
    "#]],
    );
}

#[test]
fn a_failure_stops_only_what_depends_on_it() {
    let graph = graph(&["db", "web: db", "cache", "ingress: web", "job: cache"]);
    let mut server = Server::default();
    server
        .rejections
        .insert(key("db"), rejection(RejectionKind::Permanent));
    check(
        server.run(&graph),
        expect![[r#"
            observe db web cache ingress job
            record db web cache ingress job
            create db cache
            confirm cache; create job
            confirm job
            failed
              db: failed: the server says no
              web: blocked: waits for db: the server says no
              ingress: blocked: waits for web → db: the server says no
        "#]],
    );
    // The rejection is over.
    server.rejections.clear();
    server.observation("db").rejection = None;
    check(
        server.run(&graph),
        expect![[r#"
        create db
        confirm db; create web
        confirm web; create ingress
        confirm ingress
        ready
    "#]],
    );
}

#[test]
fn a_write_is_retried_at_its_time() {
    let graph = graph(&["a"]);
    let mut server = Server::default();
    let at = Timestamp::from_millis(5_000);
    server
        .rejections
        .insert(key("a"), rejection(RejectionKind::RetryAt(at)));
    check(
        server.run(&graph),
        expect![[r#"
            observe a
            record a
            create a
            progressing
              a: waiting: the server says no
              plans again after 5 s
        "#]],
    );
    server.wait(5);
    server.rejections.clear();
    check(
        server.run(&graph),
        expect![[r#"
        create a
        confirm a
        ready
    "#]],
    );
}

// ---- Readiness ----

#[test]
fn a_wait_names_what_it_waits_for_and_ends_at_its_timeout() {
    let slow = Entry {
        timeout: Some(Duration::from_secs(60)),
        ..entry("db")
    };
    let graph = with(vec![slow, entry("web: db")]);
    let mut server = Server::default();
    let waiting = Health::Waiting("1 of 3 replicas are ready".to_owned());
    server.healths.insert(key("db"), waiting.clone());
    check(
        server.run(&graph),
        expect![[r#"
            observe db web
            record db web
            create db
            confirm db
            progressing
              db: waiting: 1 of 3 replicas are ready
              web: blocked: waits for db: 1 of 3 replicas are ready
              plans again after 60 s
        "#]],
    );
    server.wait(60);
    check(
        server.run(&graph),
        expect![[r#"
            failed
              db: failed: ConfigMap shop/db was not ready within 60 s: 1 of 3 replicas are ready
              web: blocked: waits for db: ConfigMap shop/db was not ready within 60 s: 1 of 3 replicas are ready
        "#]],
    );
    // It becomes ready after all.
    server.get("db").health = Health::Ready;
    server.observe_all();
    check(
        server.run(&graph),
        expect![[r#"
        create web
        confirm web
        ready
    "#]],
    );
    // It loses its readiness. What exists stays, and a change of it waits.
    server.get("db").health = waiting;
    let now = server.now;
    server.get("db").unready_since = now;
    server.observe_all();
    server.change("web");
    check(
        server.run(&graph),
        expect![[r#"
            progressing
              db: waiting: 1 of 3 replicas are ready
              web: blocked: waits for db: 1 of 3 replicas are ready
              plans again after 60 s
        "#]],
    );
}

#[test]
fn a_failed_member_is_told_from_one_that_makes_progress() {
    let graph = graph(&["db", "web: db", "cache"]);
    let mut server = Server::default();
    let failed = Health::Failed("the image does not exist".to_owned());
    server.healths.insert(key("db"), failed);
    check(
        server.run(&graph),
        expect![[r#"
            observe db web cache
            record db web cache
            create db cache
            confirm db cache
            failed
              db: failed: the image does not exist
              web: blocked: waits for db: the image does not exist
        "#]],
    );
}

// ---- Updates ----

#[test]
fn only_what_differs_is_written() {
    let graph = graph(&["db", "web: db", "cache"]);
    let mut server = Server::default();
    server.run(&graph);
    server.change("db");
    server.change("web");
    check(
        server.run(&graph),
        expect![[r#"
        update db
        update web
        ready
    "#]],
    );
}

#[test]
fn orders_replace_dependencies_for_one_kind_of_action() {
    let orders = Orders {
        provision: groups(&["web", "db cache"]),
        update: groups(&["cache", "web db"]),
        terminate: groups(&["db", "web", "cache"]),
    };
    let entries = vec![entry("db"), entry("web: db"), entry("cache: web")];
    let graph = Graph::new(entries, &orders).unwrap();
    let mut server = Server::default();
    check(
        server.run(&graph),
        expect![[r#"
        observe db web cache
        record db web cache
        create web
        confirm web; create db cache
        confirm db cache
        ready
    "#]],
    );
    for name in ["db", "web", "cache"] {
        server.change(name);
    }
    check(
        server.run(&graph),
        expect![[r#"
        update cache
        update db web
        ready
    "#]],
    );
    check(
        server.delete(),
        expect![[r#"
        delete db
        forget db
        delete web
        forget web
        delete cache
        forget cache
        complete
    "#]],
    );
}

#[test]
fn a_creation_goes_first_where_orders_contradict_one_another() {
    let orders = Orders {
        provision: groups(&["primary", "replica"]),
        update: groups(&["replica", "primary"]),
        ..Orders::default()
    };
    let set = |names: &[&str]| {
        let entries = names.iter().map(|name| entry(name)).collect();
        Graph::new(entries, &orders).unwrap()
    };
    let small = Graph::new(vec![entry("primary")], &Orders::default()).unwrap();
    let mut server = Server::default();
    server.run(&small);
    server.change("primary");
    check(
        server.run(&set(&["primary", "replica"])),
        expect![[r#"
        observe replica
        record replica
        create replica
        confirm replica; update primary
        ready
    "#]],
    );
}

#[test]
fn a_lost_member_is_created_again() {
    let graph = graph(&["a"]);
    let mut server = Server::default();
    server.run(&graph);
    server.objects.clear();
    server.observe_all();
    check(
        server.run(&graph),
        expect![[r#"
        create a
        confirm a
        ready
    "#]],
    );
}

#[test]
fn a_member_that_is_being_deleted_is_created_again_when_it_is_gone() {
    let graph = graph(&["a"]);
    let mut server = Server::default();
    server.run(&graph);
    server.get("a").is_terminating = true;
    server.observe_all();
    check(
        server.run(&graph),
        expect![[r#"
            progressing
              a: waiting: ConfigMap shop/a is being deleted; it is created again when it is gone
        "#]],
    );
    server.objects.clear();
    server.observe_all();
    check(
        server.run(&graph),
        expect![[r#"
        create a
        confirm a
        ready
    "#]],
    );
}

#[test]
fn labels_that_were_taken_off_are_put_back() {
    let graph = graph(&["a"]);
    let mut server = Server::default();
    server.run(&graph);
    server.get("a").owner = MemberOwner::Unowned;
    server.observe_all();
    check(
        server.run(&graph),
        expect![[r#"
        update a
        ready
    "#]],
    );
}

#[test]
fn an_immutable_field_is_changed_by_recreation_only_if_the_entry_says_so() {
    let mut server = Server::default();
    let recreate = |name: &str| Entry {
        on_immutable: OnImmutable::Recreate,
        ..entry(name)
    };
    let graph = with(vec![entry("job"), recreate("batch"), entry("web: batch")]);
    server.run(&graph);
    for name in ["job", "batch"] {
        server.change(name);
        server.observation(name).rejection = Some(rejection(RejectionKind::Immutable));
    }
    server.pruning = Pruning::Suspended;
    check(
        server.run(&graph),
        expect![[r#"
            progressing
              job: failed: the server says no
              batch: waiting: ConfigMap shop/batch is recreated when the canary is promoted
        "#]],
    );
    server.pruning = Pruning::Confirmed;
    check(
        server.run(&graph),
        expect![[r#"
            delete batch
            create batch
            confirm batch
            failed
              job: failed: the server says no
        "#]],
    );
}

// ---- Ownership ----

#[test]
fn existing_objects_are_treated_as_their_entries_say() {
    let existing = |name: &str, on_existing| Entry {
        on_existing,
        ..entry(name)
    };
    let graph = with(vec![
        entry("refused"),
        existing("adopted", OnExisting::Adopt),
        existing("left", OnExisting::CreateOnly),
        existing("created", OnExisting::CreateOnly),
        existing("foreign", OnExisting::Adopt),
        existing("lost", OnExisting::Adopt),
    ]);
    let mut server = Server::default();
    for name in ["refused", "adopted", "left"] {
        server.add(name, MemberOwner::Unowned);
    }
    server.add(
        "foreign",
        MemberOwner::Other("ObjectSet shop/other".to_owned()),
    );
    let nonce = "a nonce of which the inventory knows nothing".to_owned();
    server.add("lost", MemberOwner::ThisSet { nonce });
    check(
        server.run(&graph),
        expect![[r#"
            observe refused adopted left created foreign lost
            record adopted created
            update adopted; create created
            confirm adopted created
            failed
              refused: failed: ConfigMap shop/refused exists and belongs to no set; delete it, or set `on-existing` to `adopt`
              foreign: failed: ConfigMap shop/foreign belongs to ObjectSet shop/other; remove it there, or here
              lost: failed: ConfigMap shop/lost carries the labels of this set, and the inventory does not have it; delete it, or remove the labels and set `on-existing` to `adopt`
        "#]],
    );
    // An entry that only creates never changes what it has created.
    server.change("created");
    server.change("adopted");
    check(
        server.run(&graph),
        expect![[r#"
            update adopted
            failed
              refused: failed: ConfigMap shop/refused exists and belongs to no set; delete it, or set `on-existing` to `adopt`
              foreign: failed: ConfigMap shop/foreign belongs to ObjectSet shop/other; remove it there, or here
              lost: failed: ConfigMap shop/lost carries the labels of this set, and the inventory does not have it; delete it, or remove the labels and set `on-existing` to `adopt`
        "#]],
    );
    check(
        server.delete(),
        expect![[r#"
        delete adopted created
        forget adopted created
        complete
    "#]],
    );
    let left: Vec<&str> = server.objects.keys().map(super::server::name_of).collect();
    assert_eq!(left, ["foreign", "left", "lost", "refused"]);
}

#[test]
fn a_backup_that_gives_members_new_uids_is_recognised() {
    let graph = graph(&["a"]);
    let mut server = Server::default();
    server.run(&graph);
    server.get("a").uid = "restored".to_owned();
    server.restart();
    check(
        server.run(&graph),
        expect![[r#"
        observe a
        confirm a
        ready
    "#]],
    );
}

#[test]
fn a_crash_before_the_uid_is_known_leaves_no_foreign_object() {
    let graph = graph(&["a"]);
    let mut server = Server::default();
    for _ in 0..3 {
        let plan = server.plan(&graph);
        for action in &plan.actions {
            server.execute(action, graph.entries());
        }
    }
    assert_eq!(server.inventory[&key("a")].uid, None);
    server.restart();
    check(
        server.run(&graph),
        expect![[r#"
        observe a
        confirm a
        ready
    "#]],
    );
}

// ---- Pruning ----

#[test]
fn members_without_an_entry_are_pruned_in_reverse_order_at_the_end() {
    let mut server = Server::default();
    server.run(&graph(&["db", "web: db", "ingress: web"]));
    server.version = 2;
    let smaller = graph(&["new"]);
    check(
        server.run(&smaller),
        expect![[r#"
        observe new; remove db ingress web
        record new
        create new
        confirm new; mark ingress
        delete ingress
        forget ingress
        mark web
        delete web
        forget web
        mark db
        delete db
        forget db
        ready
    "#]],
    );
}

#[test]
fn nothing_is_pruned_while_an_entry_fails() {
    let mut server = Server::default();
    server.run(&graph(&["a", "old"]));
    server.version = 2;
    server
        .healths
        .insert(key("new"), Health::Failed("crashes".to_owned()));
    check(
        server.run(&graph(&["a", "new"])),
        expect![[r#"
            observe new; remove old
            record new
            create new
            confirm new
            failed
              new: failed: crashes
              - old: Held
        "#]],
    );
}

#[test]
fn a_large_prune_waits_for_a_confirmation() {
    let mut server = Server::default();
    server.run(&graph(&["a", "b", "c", "d", "e", "f", "g"]));
    server.version = 2;
    check(
        server.run(&graph(&["a"])),
        expect![[r#"
        remove b c d e f g
        prunes 6 of 7 after a confirmation
          - b: Held
          - c: Held
          - d: Held
          - e: Held
          - f: Held
          - g: Held
    "#]],
    );
    server.pruning = Pruning::Confirmed;
    check(
        server.run(&graph(&["a"])),
        expect![[r#"
        mark b c d e f g
        delete b c d e f g
        forget b c d e f g
        ready
    "#]],
    );
}

#[test]
fn a_member_that_gets_an_entry_again_loses_its_mark() {
    let mut server = Server::default();
    server.run(&graph(&["a", "b"]));
    server.version = 2;
    server.get("b").is_marked = true;
    server.observe_all();
    check(
        server.run(&graph(&["a", "b"])),
        expect![[r#"
        update b
        ready
    "#]],
    );
}

#[test]
fn a_canary_leaves_what_it_would_delete_and_is_ready() {
    let mut server = Server::default();
    server.run(&graph(&["a", "b"]));
    server.version = 2;
    server.pruning = Pruning::Suspended;
    check(
        server.run(&graph(&["a", "c"])),
        expect![[r#"
        observe c; remove b
        record c
        create c
        confirm c
        ready
          - b: Held
    "#]],
    );
    server.pruning = Pruning::Confirmed;
    check(
        server.run(&graph(&["a", "c"])),
        expect![[r#"
        mark b
        delete b
        forget b
        ready
    "#]],
    );
}

#[test]
fn members_that_an_earlier_version_removed_are_deleted_first() {
    let mut server = Server {
        pruning: Pruning::Suspended,
        ..Server::default()
    };
    server.run(&graph(&["db", "web: db", "ingress: web"]));
    server.version = 2;
    server.run(&graph(&["db", "web: db"]));
    server.version = 3;
    server.run(&graph(&["db"]));
    server.pruning = Pruning::Confirmed;
    check(
        server.run(&graph(&["db"])),
        expect![[r#"
        mark ingress
        delete ingress
        forget ingress
        mark web
        delete web
        forget web
        ready
    "#]],
    );
}

#[test]
fn members_are_kept_as_their_entries_and_the_policy_say() {
    let kept = |name: &str, on_delete| Entry {
        on_delete,
        ..entry(name)
    };
    let entries = || {
        vec![
            entry("web"),
            kept("config", OnDelete::Retain),
            kept("backup", OnDelete::OnlyUnderWipeOut),
        ]
    };
    let mut server = Server::default();
    server.run(&with(entries()));
    check(
        server.delete(),
        expect![[r#"
        release backup config; delete web
        forget backup config web
        complete
    "#]],
    );
    let left: Vec<&str> = server.objects.keys().map(super::server::name_of).collect();
    assert_eq!(left, ["backup", "config"]);
    let mut server = Server {
        policy: TerminationPolicy::WipeOut,
        ..Server::default()
    };
    server.run(&with(entries()));
    check(
        server.delete(),
        expect![[r#"
        delete backup; release config; delete web
        forget backup config web
        complete
    "#]],
    );
    let mut server = Server {
        policy: TerminationPolicy::DoNotTerminate,
        ..Server::default()
    };
    server.run(&with(entries()));
    check(
        server.delete(),
        expect![[r#"
        refused
          - backup: Held
          - config: Held
          - web: Held
    "#]],
    );
}

// ---- Deletion ----

#[test]
fn a_deletion_goes_in_reverse_order_and_waits_for_absence() {
    let mut server = Server::default();
    server.run(&graph(&["db", "web: db", "cache"]));
    server.get("web").is_terminating = true;
    server.restart();
    check(
        server.delete(),
        expect![[r#"
            observe cache web
            delete cache
            forget cache
            progressing
              - web: Waiting("ConfigMap shop/web is being deleted; its finalizers are not complete")
              - db: after web
        "#]],
    );
    server.objects.remove(&key("web"));
    server.observe_all();
    check(
        server.delete(),
        expect![[r#"
        forget web
        observe db
        delete db
        forget db
        complete
    "#]],
    );
}

#[test]
fn a_rejected_deletion_stays_in_the_inventory() {
    let mut server = Server::default();
    server.run(&graph(&["db", "web: db"]));
    server
        .rejections
        .insert(key("web"), rejection(RejectionKind::Permanent));
    check(
        server.delete(),
        expect![[r#"
            delete web
            failed
              - web: Failed("the server says no")
              - db: after web
        "#]],
    );
}

#[test]
fn an_object_that_took_the_name_of_a_member_is_left_alone() {
    let mut server = Server::default();
    server.run(&graph(&["a"]));
    server.objects.clear();
    server.add("a", MemberOwner::Unowned);
    server.observe_all();
    check(
        server.delete(),
        expect![[r#"
        forget a
        complete
    "#]],
    );
    assert_eq!(server.objects.len(), 1);
}

#[test]
fn members_of_an_unknown_wave_go_last() {
    let mut server = Server::default();
    server.run(&graph(&["db", "web: db"]));
    let member = server.inventory.get_mut(&key("web")).unwrap();
    member.facts.wave = None;
    check(
        server.delete(),
        expect![[r#"
        delete db
        forget db
        delete web
        forget web
        complete
    "#]],
    );
}

// ---- Size ----

#[test]
fn a_chain_of_ten_thousand_entries_is_planned_without_recursion() {
    const ENTRIES: usize = 10_000;
    let texts: Vec<String> = (0..ENTRIES)
        .map(|number| match number {
            0 => "0".to_owned(),
            _ => format!("{number}: {}", number - 1),
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let graph = graph(&texts);
    let plan = Server::default().plan(&graph);
    assert_eq!(plan.state, SetState::Progressing);
    assert_eq!(
        graph.facts(ENTRIES - 1).and_then(|facts| facts.wave),
        Some(0)
    );
}
