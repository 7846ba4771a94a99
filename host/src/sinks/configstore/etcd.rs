//! The config store on etcd.
