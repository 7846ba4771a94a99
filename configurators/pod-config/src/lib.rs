//! Composes the effective configuration of each Pod
