//! Whether a version can be upgraded to.

use configurator_sdk::{HandlerError, Input, Output};

use crate::cluster::Cluster;

/// A newer version can, an older one cannot: it may not read what the newer has stored.
///
/// # Errors
/// Fatal, with the code `DOWNGRADE`, when it is older, or is no version.
pub fn check_version(input: &Input) -> Result<Output, HandlerError> {
    let Cluster { spec, status, .. } = Cluster::of(input)?;
    let has = status.version.unwrap_or_default();
    let no_version = |text: &str| {
        HandlerError::fatal(format!("{text:?} is no version, as 2.1.0")).code("DOWNGRADE")
    };
    let wanted = parts(&spec.version).ok_or_else(|| no_version(&spec.version))?;
    let known = parts(&has).ok_or_else(|| no_version(&has))?;
    if wanted < known {
        let message = format!(
            "{} is older than {has}, which the cluster has",
            spec.version
        );
        return Err(HandlerError::fatal(message).code("DOWNGRADE"));
    }
    Ok(Output::new())
}

fn parts(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        assert!(parts("2.10.0") > parts("2.9.9"));
        assert_eq!(parts("latest"), None);
    }
}
