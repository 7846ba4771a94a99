//! Distributes the members of an inventory over its pages.

use std::collections::HashMap;

use configurator_core::graph::member::MemberKey;

/// The most members of a page.
pub(super) const PAGE: usize = 500;

/// The page of each member. A member stays on its page, so that a change of one member writes one page.
///
/// While one page is enough, the pages of members are not kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Pages {
    of: HashMap<MemberKey, usize>,
}

impl Pages {
    /// Whether the page of each member is kept.
    pub(super) fn are_kept(&self) -> bool {
        !self.of.is_empty()
    }

    /// Takes in the members of a page.
    pub(super) fn keep<'a>(&mut self, page: usize, members: impl Iterator<Item = &'a MemberKey>) {
        self.of.extend(members.map(|member| (member.clone(), page)));
    }

    /// Distributes the members. Those without a page are put into the first one that has room. Returns the members of each page, `pages` at
    /// least.
    pub(super) fn distribute<'a, M>(
        &mut self,
        members: Vec<(&'a MemberKey, M)>,
        pages: usize,
    ) -> Vec<Vec<(&'a MemberKey, M)>> {
        let mut distributed: Vec<Vec<(&MemberKey, M)>> = Vec::new();
        distributed.resize_with(pages.max(1), Vec::new);
        if !self.are_kept() && members.len() <= PAGE && pages <= 1 {
            return vec![members];
        }
        let mut without = Vec::new();
        for (key, member) in members {
            match self.of.get(key).and_then(|page| distributed.get_mut(*page)) {
                Some(page) => page.push((key, member)),
                None => without.push((key, member)),
            }
        }
        let mut page = 0;
        for (key, member) in without {
            while distributed.get(page).is_some_and(|page| page.len() >= PAGE) {
                page += 1;
            }
            if page == distributed.len() {
                distributed.push(Vec::new());
            }
            if let Some(found) = distributed.get_mut(page) {
                found.push((key, member));
            }
        }
        self.of.clear();
        for (page, members) in distributed.iter().enumerate() {
            self.keep(page, members.iter().map(|(key, _)| *key));
        }
        distributed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: std::ops::Range<usize>) -> Vec<MemberKey> {
        let key = |name: usize| MemberKey::Kubernetes {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: format!("{name:04}"),
        };
        names.map(key).collect()
    }

    fn sizes(pages: &mut Pages, keys: &[MemberKey], number: usize) -> Vec<usize> {
        let members = keys.iter().map(|key| (key, ())).collect();
        let distributed = pages.distribute(members, number);
        distributed.iter().map(Vec::len).collect()
    }

    #[test]
    fn one_page_is_enough_for_few_members() {
        let mut pages = Pages::default();
        assert_eq!(sizes(&mut pages, &keys(0..PAGE), 1), [PAGE]);
        assert!(!pages.are_kept());
    }

    #[test]
    fn members_stay_on_their_pages() {
        let mut pages = Pages::default();
        pages.keep(0, keys(0..PAGE).iter());
        assert_eq!(sizes(&mut pages, &keys(0..1200), 1), [500, 500, 200]);
        // 100 of the first page go, and 150 others come: they take the places.
        let mut changed = keys(100..1200);
        changed.extend(keys(2000..2150));
        assert_eq!(sizes(&mut pages, &changed, 3), [500, 500, 250]);
        assert_eq!(sizes(&mut pages, &keys(600..700), 3), [0, 100, 0]);
        assert_eq!(sizes(&mut pages, &[], 3), [0, 0, 0]);
    }
}
