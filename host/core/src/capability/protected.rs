//! Kinds that no pattern matches: whoever may change them can extend rights, or act as somebody else. A rule must name them in full.

use super::KubernetesRule;

/// API groups of rights, of the definitions of kinds, and of this project.
pub(super) const GROUPS: [&str; 6] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "certificates.k8s.io",
    "configurator.dev",
    "rbac.authorization.k8s.io",
];

/// Resources and subresources of the core group that give tokens, or a way into a container or through a server.
pub(super) const SUBRESOURCES: [(&str, &str); 8] = [
    ("nodes", "proxy"),
    ("pods", "attach"),
    ("pods", "ephemeralcontainers"),
    ("pods", "exec"),
    ("pods", "portforward"),
    ("pods", "proxy"),
    ("serviceaccounts", "token"),
    ("services", "proxy"),
];

impl KubernetesRule {
    /// Whether the kind is no protected one, or the rule names it in full.
    pub(super) fn names_protected(
        &self,
        group: &str,
        plural: &str,
        subresource: Option<&str>,
    ) -> bool {
        let has = |names: &[String], name: &str| names.iter().any(|named| named == name);
        if GROUPS.contains(&group) {
            return has(&self.api_groups, group);
        }
        match subresource {
            Some(subresource)
                if group.is_empty() && SUBRESOURCES.contains(&(plural, subresource)) =>
            {
                has(&self.resources, plural) && has(&self.subresources, subresource)
            }
            _ => true,
        }
    }
}
