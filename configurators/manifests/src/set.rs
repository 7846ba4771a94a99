//! Objects as a set.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use configurator_sdk::{DesiredEntry, DesiredSet, HandlerError, Readiness};

use crate::application::{
    OnConflict, OnDelete, OnExisting, OnImmutable, Rule, Selector, Treatment,
};
use crate::dependencies::Dependencies;
use crate::object::Object;

/// Returns the set of these objects.
///
/// # Errors
/// Fatal, if there are none, if two have the same name, if a rule names none, or if an address names a host that is neither among the objects nor
/// external.
pub fn of(objects: Vec<Object>, treatment: &Treatment) -> Result<DesiredSet, HandlerError> {
    if objects.is_empty() {
        return Err(HandlerError::fatal("the manifests have no objects"));
    }
    let names: Vec<String> = objects.iter().map(Object::entry_name).collect();
    check_names(&names, &objects)?;
    let mut dependencies = Dependencies::of(&objects, treatment.addresses.as_ref())?;
    let mut rules: Vec<Vec<&Rule>> = vec![Vec::new(); objects.len()];
    for (number, rule) in treatment.rules.iter().enumerate() {
        let matched = select(&objects, &rule.objects, || format!("rules[{number}].match"))?;
        for (index, selector) in rule.depends_on.iter().enumerate() {
            let at = || format!("rules[{number}].dependsOn[{index}]");
            let needed = select(&objects, selector, at)?;
            for object in &matched {
                dependencies.add(*object, needed.iter().copied());
            }
        }
        for object in matched {
            if let Some(rules) = rules.get_mut(object) {
                rules.push(rule);
            }
        }
    }
    let mut set = DesiredSet::new();
    let described = names.iter().zip(objects).zip(rules).enumerate();
    for (index, ((name, object), rules)) in described {
        let mut entry = DesiredEntry::new(name, object.content);
        for needed in dependencies.of_object(index) {
            if let Some(name) = names.get(needed) {
                entry = entry.depends_on(name);
            }
        }
        set.push(rules.into_iter().fold(entry, treated));
    }
    Ok(set)
}

fn check_names(names: &[String], objects: &[Object]) -> Result<(), HandlerError> {
    let mut locations: HashMap<&str, &str> = HashMap::new();
    for (name, object) in names.iter().zip(objects) {
        if let Some(first) = locations.insert(name, &object.location) {
            return Err(HandlerError::fatal(format!(
                "{name} is defined twice: {first}; and {}",
                object.location
            )));
        }
    }
    Ok(())
}

fn select(
    objects: &[Object],
    selector: &Selector,
    at: impl FnOnce() -> String,
) -> Result<BTreeSet<usize>, HandlerError> {
    let matches = |(_, object): &(usize, &Object)| selector.matches(object);
    let found = objects.iter().enumerate().filter(matches);
    let found: BTreeSet<usize> = found.map(|(index, _)| index).collect();
    match found.is_empty() {
        true => Err(HandlerError::fatal(format!(
            "{} matches none of the objects",
            at()
        ))),
        false => Ok(found),
    }
}

fn treated(mut entry: DesiredEntry, rule: &Rule) -> DesiredEntry {
    if let Some(ready_when) = &rule.ready_when {
        entry = entry.ready_when(match ready_when.as_str() {
            "Exists" => Readiness::Exists,
            "Observed" => Readiness::Observed,
            "Healthy" => Readiness::Healthy,
            expression => Readiness::Expression(expression.to_owned()),
        });
    }
    if let Some(failed_when) = &rule.failed_when {
        entry = entry.failed_when(failed_when);
    }
    if let Some(seconds) = rule.timeout_seconds {
        entry = entry.timeout(Duration::from_secs(seconds));
    }
    if let Some(on_existing) = rule.on_existing {
        entry = entry.on_existing(match on_existing {
            OnExisting::Refuse => configurator_sdk::OnExisting::Refuse,
            OnExisting::Adopt => configurator_sdk::OnExisting::Adopt,
            OnExisting::CreateOnly => configurator_sdk::OnExisting::CreateOnly,
        });
    }
    if let Some(on_conflict) = rule.on_conflict {
        entry = entry.on_conflict(match on_conflict {
            OnConflict::Fail => configurator_sdk::OnConflict::Fail,
            OnConflict::Force => configurator_sdk::OnConflict::Force,
        });
    }
    if let Some(on_immutable) = rule.on_immutable {
        entry = entry.on_immutable(match on_immutable {
            OnImmutable::Fail => configurator_sdk::OnImmutable::Fail,
            OnImmutable::Recreate => configurator_sdk::OnImmutable::Recreate,
        });
    }
    if let Some(on_delete) = rule.on_delete {
        entry = entry.on_delete(match on_delete {
            OnDelete::WithOwner => configurator_sdk::OnDelete::WithOwner,
            OnDelete::Retain => configurator_sdk::OnDelete::Retain,
            OnDelete::OnlyUnderWipeOut => configurator_sdk::OnDelete::OnlyUnderWipeOut,
        });
    }
    rule.ignored_paths
        .iter()
        .fold(entry, DesiredEntry::ignore_path)
}
