//! Every decision of the configurator runtime, without I/O, clock or async
