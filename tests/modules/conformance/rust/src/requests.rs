//! What requests can have whatever they ask for.

use std::time::Duration;

use configurator_sdk::configstore::Basic;
use configurator_sdk::http::Http;
use configurator_sdk::kubernetes::CONFIG_MAP;
use configurator_sdk::{
    BatchErrorStrategy, HandlerError, Input, ObjectRef, OnError, Output, Readiness, Request,
};
use serde_json::json;

use crate::parameter;

pub fn http(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .request(Request::new(
            "get",
            Http::get("https://hooks.example.com/a?b=c%20d"),
        ))
        .request(Request::new(
            "post",
            Http::post("https://hooks.example.com/")
                .header("content-type", "application/json")
                .header("x-team", "red")
                .body(r#"{"text":"é"}"#),
        ))
        .request(Request::new(
            "put",
            Http::new("PUT", "http://hooks.example.com:8080/blob").body(vec![0, 255, 10]),
        )))
}

fn ask() -> configurator_sdk::Operation {
    Basic::new("key").get().into()
}

pub fn options(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .request(Request::new("plain", ask()))
        .request(Request::new("declarative", Basic::new("key").put("1")).declarative())
        .request(Request::new("grouped", ask()).group_by("group"))
        .request(Request::new("bootstrap", ask()).bootstrap_dep())
        .request(Request::new("of", ask()).of(ObjectRef::new("shop", "web")))
        .request(Request::new("fail", ask()).on_error(OnError::Fail))
        .request(Request::new("catch", ask()).catch_error())
        .request(Request::new("drop", ask()).drop_error())
        .request(Request::new("once", ask()).once())
        .request(Request::new("timeout", ask()).timeout(Duration::from_millis(1500)))
        .request(Request::new("partition", ask()).partition("team-a")))
}

pub fn strategy(input: &Input) -> Result<Output, HandlerError> {
    let output = Output::new().request(Request::new("one", ask()).group_by("all"));
    Ok(match parameter(input, "strategy")?.as_str() {
        "serial" => output
            .serial()
            .batch_error_strategy(BatchErrorStrategy::DropError),
        "parallel" => output
            .parallel()
            .batch_error_strategy(BatchErrorStrategy::CatchError),
        _ => output,
    })
}

pub fn graph(_: &Input) -> Result<Output, HandlerError> {
    let body = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}});
    let apply = |name: &str| CONFIG_MAP.apply(("shop", name), body(name));
    Ok(Output::new()
        .graph()
        .request(Request::new("a", apply("a")).ready_when(Readiness::Exists))
        .request(
            Request::new("b", apply("b"))
                .ready_when(Readiness::Observed)
                .depends_on("a"),
        )
        .request(
            Request::new("c", apply("c"))
                .ready_when(Readiness::Expression(
                    "object.data.ready == 'yes'".to_owned(),
                ))
                .depends_on("a")
                .depends_on("b"),
        )
        .request(
            Request::new("d", apply("d"))
                .ready_when(Readiness::Healthy)
                .depends_on("c"),
        ))
}
