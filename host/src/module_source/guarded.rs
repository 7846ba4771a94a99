//! A source whose panics end with the call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;

use super::{Fetched, ModulePolicies, ModuleSource, SourceError};
use crate::resource::ModuleSpec;

/// A source that answers that it is away where it panics: what strangers and embedders write must not end who keeps a Configurator.
pub(crate) struct Guarded(pub(crate) Arc<dyn ModuleSource>);

async fn guarded<T>(
    asked: impl Future<Output = Result<T, SourceError>> + Send,
) -> Result<T, SourceError> {
    let answered = AssertUnwindSafe(asked).catch_unwind().await;
    answered.unwrap_or_else(|_| {
        // What a panic says may quote anything; it is on the standard error of the host.
        Err(SourceError::Unavailable(
            "the source of the module has panicked, which is a bug: what the host wrote to its standard error says where"
                .to_owned(),
        ))
    })
}

#[async_trait]
impl ModuleSource for Guarded {
    async fn fetch(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Fetched, SourceError> {
        guarded(self.0.fetch(module, policies)).await
    }

    async fn version(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Option<String>, SourceError> {
        guarded(self.0.version(module, policies)).await
    }

    fn interval(&self, module: &ModuleSpec) -> Duration {
        let interval = catch_unwind(AssertUnwindSafe(|| self.0.interval(module)));
        interval.unwrap_or(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken;

    #[async_trait]
    impl ModuleSource for Broken {
        async fn fetch(&self, _: &ModuleSpec, _: &ModulePolicies) -> Result<Fetched, SourceError> {
            panic!("s3cret")
        }

        async fn version(
            &self,
            _: &ModuleSpec,
            _: &ModulePolicies,
        ) -> Result<Option<String>, SourceError> {
            tokio::task::yield_now().await;
            panic!("s3cret")
        }

        fn interval(&self, _: &ModuleSpec) -> Duration {
            panic!("s3cret")
        }
    }

    #[tokio::test]
    async fn a_source_that_panics_is_away() {
        let source = Guarded(Arc::new(Broken));
        let module = ModuleSpec::default();
        let policies = ModulePolicies::default();
        let fetched = source.fetch(&module, &policies).await.unwrap_err();
        let asked = source.version(&module, &policies).await.unwrap_err();
        for error in [fetched, asked] {
            assert!(matches!(error, SourceError::Unavailable(_)));
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        assert_eq!(source.interval(&module), Duration::from_secs(1));
    }
}
