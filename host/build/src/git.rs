//! What git knows of a module's sources.

use std::path::Path;

use crate::answer::answer;

/// The revision of the sources, where git keeps them; with `-dirty` where anything in their repository is not as it is there.
///
/// A folder that only lies in a repository, and whose manifest is not kept there, has none.
pub(crate) fn revision(folder: &Path, manifest: &str) -> Option<String> {
    answer("git", &["ls-files", "--error-unmatch", manifest], folder)?;
    let revision = answer("git", &["rev-parse", "HEAD"], folder)?;
    // A module may be made of more than its folder.
    let changes = answer("git", &["status", "--porcelain"], folder)?;
    Some(match changes.is_empty() {
        true => revision,
        false => format!("{revision}-dirty"),
    })
}

/// Where the sources come from, without what might be a password.
pub(crate) fn source(folder: &Path) -> Option<String> {
    let url = answer("git", &["remote", "get-url", "origin"], folder)?;
    let (scheme, rest) = url.split_once("://")?;
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    matches!(scheme, "http" | "https" | "ssh" | "git").then(|| format!("{scheme}://{rest}"))
}

/// The version of a revision, as Go has it, whose manifests have none: that of its tag, or else one made of its time and digest.
pub(crate) fn version(folder: &Path) -> Option<String> {
    let newest_first = [
        "tag",
        "--points-at",
        "HEAD",
        "--sort=-version:refname",
        "v*",
    ];
    let tags = answer("git", &newest_first, folder)?;
    if let Some(tag) = tags.lines().next() {
        return Some(tag.trim_start_matches('v').to_owned());
    }
    let made = [
        "log",
        "-1",
        "--date=format-local:%Y%m%d%H%M%S",
        "--abbrev=12",
        "--format=0.0.0-%cd-%h",
    ];
    answer(
        "env",
        &[["TZ=UTC", "git"].as_slice(), &made].concat(),
        folder,
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let named = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
        answer("git", &[&named, arguments].concat(), folder).unwrap();
    }

    #[test]
    fn sources_have_the_revision_of_their_repository() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("one");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("go.mod"), "module one").unwrap();
        fs::write(root.path().join("beside"), "").unwrap();
        git(root.path(), &["init", "--quiet"]);
        assert_eq!(revision(&folder, "go.mod"), None);

        git(root.path(), &["add", "."]);
        git(root.path(), &["commit", "--quiet", "--message", "first"]);
        let clean = revision(&folder, "go.mod").unwrap();
        assert_eq!(clean.len(), 40);
        assert!(version(&folder).unwrap().starts_with("0.0.0-2"));
        for tag in ["v0.9.0", "v0.10.0", "other"] {
            git(root.path(), &["tag", tag]);
        }
        assert_eq!(version(&folder).as_deref(), Some("0.10.0"));

        // It may be made of what lies beside it.
        fs::write(root.path().join("beside"), "changed").unwrap();
        let dirty = revision(&folder, "go.mod").unwrap();
        assert_eq!(dirty, format!("{clean}-dirty"));

        let unknown = root.path().join("two");
        fs::create_dir(&unknown).unwrap();
        fs::write(unknown.join("go.mod"), "module two").unwrap();
        assert_eq!(revision(&unknown, "go.mod"), None);
    }
}
