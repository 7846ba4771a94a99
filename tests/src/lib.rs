//! A host on embedded stores, and real servers, as tests want them.

pub mod books;
pub mod cloud;
pub mod configurator;
pub mod controlplane;
pub mod crash_points;
pub mod crashing_host;
pub mod endpoint;
pub mod gate;
pub mod guests;
pub mod intercepted;
pub mod machine;
pub mod operator;
pub mod pipeline_plan;
pub mod poison;
pub mod program;
pub mod proxy;
pub mod registry;
pub mod shelf;
pub mod unlimited;
pub mod witness;
pub mod world;
