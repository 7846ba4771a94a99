//! Virtual environments of Python: programs that build modules are installed into them.

use std::path::{Path, PathBuf};

/// Where [`of`] looks, for messages.
pub(crate) const PLACE: &str = "the `.venv` of the module's folder or one above";

/// Those to look at: of the folder and the ones above it, then the given one.
pub(crate) fn of(folder: &Path, given: Option<&Path>) -> Vec<PathBuf> {
    let own = folder.ancestors().map(|folder| folder.join(".venv"));
    own.filter(|venv| venv.is_dir())
        .chain(given.map(Path::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_environment_nearer_to_the_module_comes_first() {
        let root = tempfile::tempdir().unwrap();
        let module = root.path().join("modules/one");
        for folder in [&module, root.path()] {
            fs::create_dir_all(folder.join(".venv")).unwrap();
        }
        let given = Path::new("/given");
        assert_eq!(
            of(&module, Some(given))[..],
            [
                module.join(".venv"),
                root.path().join(".venv"),
                given.to_owned()
            ]
        );
    }
}
