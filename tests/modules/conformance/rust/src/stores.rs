//! Requests to the config store and the secret store.

use configurator_sdk::configstore::{AppConf, Basic, Entry, Transaction, TwoLayers};
use configurator_sdk::secretstore::Secret;
use configurator_sdk::{HandlerError, Input, Output, Request};
use serde_json::json;

pub fn entries(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .request(Request::new("get-pod", Entry::pod("shop", "web").get()))
        .request(Request::new(
            "create-node",
            Entry::node("node-1").create("a"),
        ))
        .request(Request::new(
            "update-namespace",
            Entry::namespace("shop").update("b"),
        ))
        .request(Request::new(
            "update-workload",
            Entry::workload("shop", "StatefulSet", "db")
                .uid("4a0f")
                .update("c"),
        ))
        .request(Request::new(
            "delete-workload",
            Entry::workload("shop", "Deployment", "web")
                .uid("77")
                .delete(),
        )))
}

pub fn app_conf(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .request(Request::new(
            "create",
            AppConf::new("web", "log.level").create("info"),
        ))
        .request(Request::new(
            "update",
            AppConf::new("web", "log.level")
                .namespace("shop")
                .update("debug"),
        ))
        .request(Request::new(
            "delete",
            AppConf::new("web", "log.level").namespace("shop").delete(),
        )))
}

pub fn basic(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .request(Request::new("get", Basic::new("region").get()))
        .request(Request::new("put", Basic::new("region").put("north")))
        .request(Request::new("delete", Basic::new("a/b c").delete())))
}

pub fn two_layers(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .request(Request::new("get", TwoLayers::new("teams", "red").get()))
        .request(Request::new(
            "create",
            TwoLayers::new("teams", "red").create("1"),
        ))
        .request(Request::new(
            "update",
            TwoLayers::new("teams", "red").update("2"),
        ))
        .request(Request::new(
            "delete",
            TwoLayers::new("teams", "red").delete(),
        )))
}

pub fn transaction(_: &Input) -> Result<Output, HandlerError> {
    let all = Transaction::new()
        .and(Entry::pod("shop", "web").update("entry"))
        .and(AppConf::new("web", "mode").namespace("shop").create("fast"))
        .and(Basic::new("count").put("7"))
        .and(TwoLayers::new("teams", "red").delete());
    Ok(Output::new().request(Request::new("all", all)))
}

pub fn secrets(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .request(Request::new("get", Secret::new("db").get()))
        .request(Request::new("create", Secret::new("db").create()))
        .request(Request::new(
            "create-with",
            Secret::new("db").create_with(json!({"user": "app", "password": "p\"w"})),
        ))
        .request(Request::new("update", Secret::new("db").update(3)))
        .request(Request::new(
            "update-with",
            Secret::new("db").update_with(0, json!("p")),
        ))
        .request(Request::new("delete", Secret::new("db").delete())))
}
