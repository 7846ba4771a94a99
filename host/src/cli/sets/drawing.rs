//! A set as text: a tree of its members, and what they wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anstyle::Style;
use anyhow::bail;

use crate::cli::escape::Escaped;
use crate::cli::terminal::{BAD, FAINT, GOOD, NAME, WAITING};
use crate::resource::object_set::{MemberSpec, MemberStatus, ObjectSet, ObjectSetStatus};
use crate::sets::MAX_LISTED;

/// Draws the members in the order in which they are created, a line each, with the state of each.
pub(super) fn tree(set: &ObjectSet) -> String {
    let status = set.status.clone().unwrap_or_default();
    let mut text = head(&status);
    let mut unready: BTreeMap<&str, &MemberStatus> = BTreeMap::new();
    for member in &status.members {
        unready.insert(&member.object, member);
    }
    // A status that is full does not say which others are ready.
    let is_full = status.members.len() >= MAX_LISTED;
    let mut members: Vec<&MemberSpec> = set.spec.members.iter().collect();
    // Members are deleted in the reverse order of their creation, and those without a wave last.
    members.sort_by_key(|member| {
        let wave = member.wave.unwrap_or(u32::MAX);
        (std::cmp::Reverse(wave), member.entry.as_str())
    });
    for member in members {
        let object = member.key().to_string();
        let line = match unready.remove(object.as_str()) {
            Some(unready) => Line::unready(unready),
            None if is_full => Line::unknown(&object, &member.entry),
            None => Line::ready(&object, &member.entry),
        };
        line.draw(0, &mut text);
    }
    // Entries that the inventory does not have yet.
    for member in status.members.iter() {
        if unready.contains_key(member.object.as_str()) {
            Line::unready(member).draw(0, &mut text);
        }
    }
    text
}

/// Draws the members that hold up others, each with its reason and those that wait for it. With an entry, only what this entry waits for.
///
/// # Errors
/// When the set has no such entry.
pub(super) fn why(set: &ObjectSet, entry: Option<&str>) -> anyhow::Result<String> {
    let status = set.status.clone().unwrap_or_default();
    let mut text = head(&status);
    let mut waiting: BTreeMap<&str, Vec<&MemberStatus>> = BTreeMap::new();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for member in &status.members {
        names.insert(&member.entry);
        names.insert(&member.object);
        waiting.entry(&member.waits_for).or_default().push(member);
    }
    if let Some(entry) = entry {
        draw_path(set, &status, entry, &mut text)?;
        return Ok(text);
    }
    if status.members.is_empty() && !status.waiting_for.is_empty() {
        let _ = writeln!(text, "{}", Escaped(&status.waiting_for));
    }
    let mut drawn = BTreeSet::new();
    for member in &status.members {
        if member.waits_for.is_empty() || !names.contains(member.waits_for.as_str()) {
            draw_waiting(member, &waiting, 0, &mut drawn, &mut text);
        }
    }
    Ok(text)
}

fn draw_waiting<'a>(
    member: &'a MemberStatus,
    waiting: &BTreeMap<&str, Vec<&'a MemberStatus>>,
    depth: usize,
    drawn: &mut BTreeSet<&'a str>,
    text: &mut String,
) {
    if !drawn.insert(&member.object) {
        return;
    }
    let line = Line::unready(member);
    // Below the member that holds it up, the reason says nothing more.
    let line = if depth == 0 {
        line
    } else {
        line.without_reason()
    };
    line.draw(depth, text);
    let of_entry = waiting.get(member.entry.as_str());
    let of_object = waiting.get(member.object.as_str());
    for next in [of_entry, of_object].into_iter().flatten().flatten() {
        draw_waiting(next, waiting, depth + 1, drawn, text);
    }
}

fn draw_path(
    set: &ObjectSet,
    status: &ObjectSetStatus,
    entry: &str,
    text: &mut String,
) -> anyhow::Result<()> {
    let find = |name: &str| {
        let mut members = status.members.iter();
        members.find(|member| member.entry == name || member.object == name)
    };
    let Some(mut member) = find(entry) else {
        let Some(ready) = set.spec.members.iter().find(|known| known.entry == entry) else {
            let owner = &status.owner;
            bail!("the set of {owner} has no entry {entry:?}; `configurator sets tree` lists them");
        };
        Line::ready(&ready.key().to_string(), entry).draw(0, text);
        return Ok(());
    };
    for depth in 0..=status.members.len() {
        let next = find(&member.waits_for).filter(|_| !member.waits_for.is_empty());
        let line = Line::unready(member);
        let Some(next) = next else {
            line.draw(depth, text);
            break;
        };
        line.without_reason().draw(depth, text);
        member = next;
    }
    Ok(())
}

fn head(status: &ObjectSetStatus) -> String {
    let ObjectSetStatus {
        owner,
        state,
        objects,
        ready,
        ..
    } = status;
    let style = style_of(state);
    let state = match state.as_str() {
        "" => "the host has not published its state yet",
        state => state,
    };
    format!(
        "{NAME}{}{NAME:#}  {style}{}{style:#}, {objects} objects, {ready} ready\n",
        Escaped(owner),
        Escaped(state)
    )
}

fn style_of(state: &str) -> Style {
    match state {
        "Ready" => GOOD,
        "Failed" | "Unconfirmed" => BAD,
        _ => WAITING,
    }
}

/// One member.
#[derive(Clone, Copy)]
struct Line<'a> {
    object: &'a str,
    entry: &'a str,
    state: &'a str,
    reason: &'a str,
}

impl<'a> Line<'a> {
    const fn ready(object: &'a str, entry: &'a str) -> Self {
        Self {
            object,
            entry,
            state: "Ready",
            reason: "",
        }
    }

    const fn unknown(object: &'a str, entry: &'a str) -> Self {
        Self {
            state: "Unknown",
            ..Self::ready(object, entry)
        }
    }

    fn unready(member: &'a MemberStatus) -> Self {
        Self {
            object: &member.object,
            entry: &member.entry,
            state: &member.state,
            reason: &member.reason,
        }
    }

    const fn without_reason(self) -> Self {
        Self { reason: "", ..self }
    }

    fn draw(self, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        let (style, mark) = match self.state {
            "Ready" => (GOOD, "✓"),
            "Failed" => (BAD, "✗"),
            "Blocked" | "Held" => (FAINT, "·"),
            "Unknown" => (WAITING, "?"),
            "Deleting" => (WAITING, "−"),
            _ => (WAITING, "▶"),
        };
        let (object, entry) = (Escaped(self.object), Escaped(self.entry));
        let _ = write!(
            text,
            "{indent}{style}{mark}{style:#} {object}  {FAINT}{entry}{FAINT:#}"
        );
        if !self.reason.is_empty() {
            let _ = write!(text, "  {}", Escaped(self.reason));
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn set() -> ObjectSet {
        let member = |name: &str, wave: u32| json!({"kind": "ConfigMap", "namespace": "shop", "name": name, "entry": name, "wave": wave, "nonce": "n"});
        let unready = |name: &str, state: &str, waits_for: &str, reason: &str| {
            json!({
                "object": format!("ConfigMap shop/{name}"), "entry": name,
                "state": state, "waitsFor": waits_for, "reason": reason,
            })
        };
        let set = json!({
            "apiVersion": "configurator.dev/v1alpha1", "kind": "ObjectSet",
            "metadata": {"name": "books-1", "namespace": "shop"},
            "spec": {
                "owner": {"apiVersion": "shop.example/v1", "kind": "Shop", "namespace": "shop", "name": "books", "uid": "u"},
                "configurator": {"name": "shops", "uid": "c"},
                "terminationPolicy": "Delete", "version": 1, "pages": 1, "sequence": 1, "seal": "",
                "members": [member("web", 0), member("cache", 1), member("queue", 1), member("account", 2)],
            },
            "status": {
                "state": "Failed", "owner": "Shop shop/books", "objects": 4, "ready": 1,
                "waitingFor": "ConfigMap shop/cache: no such image",
                "members": [
                    unready("cache", "Failed", "", "no such image\u{1b}[2J"),
                    unready("queue", "Waiting", "", ".status.ready is false"),
                    unready("web", "Blocked", "cache", "waits for cache: no such image"),
                    unready("page", "Blocked", "web", "waits for web → cache: no such image"),
                ],
            },
        });
        serde_json::from_value(set).unwrap()
    }

    fn check(text: &str, expected: Expect) {
        let text = anstream::adapter::strip_str(text).to_string();
        expected.assert_eq(&text);
    }

    #[test]
    fn a_tree_has_each_member_with_its_state() {
        check(
            &tree(&set()),
            expect![[r#"
            Shop shop/books  Failed, 4 objects, 1 ready
            ✓ ConfigMap shop/account  account
            ✗ ConfigMap shop/cache  cache  no such image\u{1b}[2J
            ▶ ConfigMap shop/queue  queue  .status.ready is false
            · ConfigMap shop/web  web  waits for cache: no such image
            · ConfigMap shop/page  page  waits for web → cache: no such image
        "#]],
        );
    }

    #[test]
    fn what_holds_up_others_comes_first() {
        check(
            &why(&set(), None).unwrap(),
            expect![[r#"
            Shop shop/books  Failed, 4 objects, 1 ready
            ✗ ConfigMap shop/cache  cache  no such image\u{1b}[2J
              · ConfigMap shop/web  web
                · ConfigMap shop/page  page
            ▶ ConfigMap shop/queue  queue  .status.ready is false
        "#]],
        );
    }

    #[test]
    fn an_entry_names_what_it_waits_for() {
        check(
            &why(&set(), Some("page")).unwrap(),
            expect![[r#"
            Shop shop/books  Failed, 4 objects, 1 ready
            · ConfigMap shop/page  page
              · ConfigMap shop/web  web
                ✗ ConfigMap shop/cache  cache  no such image\u{1b}[2J
        "#]],
        );
        check(
            &why(&set(), Some("account")).unwrap(),
            expect![[r#"
            Shop shop/books  Failed, 4 objects, 1 ready
            ✓ ConfigMap shop/account  account
        "#]],
        );
        let unknown = why(&set(), Some("nothing")).unwrap_err();
        check(
            &unknown.to_string(),
            expect![[
                r#"the set of Shop shop/books has no entry "nothing"; `configurator sets tree` lists them"#
            ]],
        );
    }
}
