//! The embeddable configurator runtime
