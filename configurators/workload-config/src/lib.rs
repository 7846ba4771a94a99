//! Configures Deployments in batches
