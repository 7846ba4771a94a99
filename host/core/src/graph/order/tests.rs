use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// `a: b c` stands for a node with the name `a` that depends on `b` and `c`.
fn order(nodes: &[&str]) -> Result<(Vec<String>, Order), OrderError> {
    let nodes: Vec<(String, Vec<String>)> = nodes
        .iter()
        .map(|text| {
            let (name, depends_on) = text.split_once(':').unwrap_or((text, ""));
            let depends_on = depends_on.split_whitespace().map(str::to_owned);
            (name.to_owned(), depends_on.collect())
        })
        .collect();
    let order = Order::of(
        nodes
            .iter()
            .map(|(name, depends_on)| Node { name, depends_on }),
    )?;
    Ok((nodes.into_iter().map(|(name, _)| name).collect(), order))
}

#[track_caller]
fn check(nodes: &[&str], expected: Expect) {
    let text = match order(nodes) {
        Err(error) => error.to_string(),
        Ok((names, order)) => {
            let words = |indexes: &[usize]| {
                let words: Vec<&str> = indexes.iter().map(|at| names[*at].as_str()).collect();
                words.join(" ")
            };
            let waves = |waves: Vec<Vec<usize>>| {
                let waves: Vec<String> = waves.iter().map(|wave| words(wave)).collect();
                waves.join(" | ")
            };
            format!(
                "{}\nmade: {}\ndeleted: {}",
                words(order.sorted()),
                waves(order.waves()),
                waves(order.deletion_waves())
            )
        }
    };
    expected.assert_eq(&text);
}

#[test]
fn a_circle_is_told_with_its_path() {
    check(
        &["before", "a: before b", "b: c", "c: a", "behind: a"],
        expect![[r#"entries depend on one another in a circle: "a" → "b" → "c" → "a""#]],
    );
    check(
        &["a: a"],
        expect![[r#"entries depend on one another in a circle: "a" → "a""#]],
    );
}

#[test]
fn a_name_that_no_node_has_is_told() {
    check(
        &["a", "b: a c"],
        expect![[r#""b" depends on "c", and no entry has that name"#]],
    );
    check(
        &["a", "b", "a: b"],
        expect![[r#"two entries have the name "a""#]],
    );
}

#[test]
fn many_roots_and_no_nodes_have_an_order() {
    check(
        &[],
        expect![[r#"

        made: 
        deleted: "#]],
    );
    check(
        &["c", "b", "a"],
        expect![[r#"
        c b a
        made: c b a
        deleted: c b a"#]],
    );
    check(
        &["b: a a", "a"],
        expect![[r#"
        a b
        made: a | b
        deleted: b | a"#]],
    );
}

/// The order that the walk of KubeBlocks has for these edges, where it is the only one.
#[test]
fn a_graph_with_one_order_has_that_of_kubeblocks() {
    check(
        &[
            "0: 6 1 5",
            "1: 5",
            "2: 3 0",
            "3: 5 0",
            "4",
            "5: 4",
            "6: 4 9",
            "7: 6 2",
            "8: 7",
            "9: 12 10 11",
            "10: 1",
            "11: 12",
            "12: 10",
        ],
        expect![[r#"
            4 5 1 10 12 11 9 6 0 3 2 7 8
            made: 4 | 5 | 1 | 10 | 12 | 11 | 9 | 6 | 0 | 3 | 2 | 7 | 8
            deleted: 8 | 7 | 2 | 3 | 0 | 6 | 9 | 11 | 12 | 10 | 1 | 5 | 4"#]],
    );
}

/// What the sorts of kro come to, for nodes that it is given in the order of their names.
#[test]
fn ties_are_broken_as_in_kro() {
    check(
        &["A: F B", "B: F", "C", "D", "E", "F"],
        expect![[r#"
        C D E F B A
        made: C D E F | B | A
        deleted: A C D E | B | F"#]],
    );
    check(
        &["A: B C", "B: D", "C: D", "D", "E: F A", "F"],
        expect![[r#"
            D B C A F E
            made: D F | B C | A | E
            deleted: E | A F | B C | D"#]],
    );
    // Its layers of a deletion.
    check(
        &["A", "B: A", "C: A", "D: B C"],
        expect![[r#"
        A B C D
        made: A | B C | D
        deleted: D | B C | A"#]],
    );
    check(
        &["A", "B: A", "C: A", "D: B", "E"],
        expect![[r#"
        A B C D E
        made: A E | B C | D
        deleted: C D E | B | A"#]],
    );
}

/// What each of up to 60 nodes depends on: on any nodes, on earlier ones only, or on later ones only.
fn nodes() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let sizes = (0..60_usize, 0..3_u8);
    sizes.prop_flat_map(|(count, kind)| {
        let dependencies = prop::collection::btree_set(0..count.max(1), 0..4);
        prop::collection::vec(dependencies, count).prop_map(move |all| {
            let all = all.into_iter().enumerate();
            all.map(|(index, mut own)| {
                match kind {
                    0 => {}
                    1 => own.retain(|dependency| *dependency < index),
                    _ => own.retain(|dependency| *dependency > index),
                }
                own.into_iter().collect()
            })
            .collect()
        })
    })
}

/// Whether nodes that can come are taken away until none is left.
fn has_circle(dependencies: &[Vec<usize>]) -> bool {
    let mut left: BTreeSet<usize> = (0..dependencies.len()).collect();
    loop {
        let may_come = |index: &&usize| dependencies[**index].iter().all(|it| !left.contains(it));
        let Some(next) = left.iter().find(may_come).copied() else {
            return !left.is_empty();
        };
        left.remove(&next);
    }
}

proptest! {
    #[test]
    fn every_node_comes_once_and_after_what_it_depends_on(all in nodes()) {
        match Order::of_indexes(&all) {
            Err(path) => {
                prop_assert!(has_circle(&all));
                let next = path.iter().cycle().skip(1);
                for (index, next) in path.iter().zip(next) {
                    prop_assert!(all[*index].contains(next));
                }
                let once: BTreeSet<&usize> = path.iter().collect();
                prop_assert_eq!(once.len(), path.len());
            }
            Ok(order) => {
                prop_assert!(!has_circle(&all));
                let made: Vec<usize> = order.waves().concat();
                let mut deleted: Vec<usize> = order.deletion_waves().concat();
                deleted.reverse();
                for sequence in [order.sorted(), &made, &deleted] {
                    let place = |index: usize| sequence.iter().position(|it| *it == index).unwrap();
                    prop_assert_eq!(sequence.len(), all.len());
                    for (index, own) in all.iter().enumerate() {
                        for dependency in own {
                            prop_assert!(place(*dependency) < place(index));
                        }
                    }
                }
            }
        }
    }
}
