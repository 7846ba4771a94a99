//! The embedded Kubernetes-style API
