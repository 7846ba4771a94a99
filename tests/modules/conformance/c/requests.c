/* What requests can have whatever they ask for. */
#include "conformance.h"

const cfgr_error *http(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    static const unsigned char blob[] = {0, 255, 10};
    cfgr_output_request(output, "get", cfgr_http_get("https://hooks.example.com/a?b=c%20d"));
    cfgr_output_request(output, "post",
                        cfgr_http_post("https://hooks.example.com/",
                                       .headers = CFGR_HEADERS({"content-type", "application/json"}, {"x-team", "red"}),
                                       .body = "{\"text\":\"é\"}"));
    cfgr_output_request(output, "put", cfgr_http("PUT", "http://hooks.example.com:8080/blob", .bytes = blob, .size = sizeof blob));
    return NULL;
}

const cfgr_error *options(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_config ask = cfgr_basic_get("key");
    cfgr_output_request(output, "plain", ask);
    cfgr_output_request(output, "declarative", cfgr_basic_put("key", "1"), .is_declarative = true);
    cfgr_output_request(output, "grouped", ask, .group_by = "group");
    cfgr_output_request(output, "bootstrap", ask, .bootstrap_dep = true);
    cfgr_output_request(output, "of", ask, .of = {"shop", "web"});
    cfgr_output_request(output, "fail", ask, .on_error = CFGR_FAIL);
    cfgr_output_request(output, "catch", ask, .on_error = CFGR_CATCH_ERROR);
    cfgr_output_request(output, "drop", ask, .on_error = CFGR_DROP_ERROR);
    cfgr_output_request(output, "once", ask, .once = true);
    cfgr_output_request(output, "timeout", ask, .timeout_ms = 1500);
    cfgr_output_request(output, "partition", ask, .partition = "team-a");
    return NULL;
}

const cfgr_error *strategy(const cfgr_input *input, cfgr_output *output) {
    const char *wanted;
    cfgr_output_request(output, "one", cfgr_basic_get("key"), .group_by = "all");
    CFGR_TRY(parameter(input, "strategy", &wanted));
    if (cfgr_equal(wanted, "serial")) {
        output->execute_strategy = CFGR_SERIAL;
        output->batch_error_strategy = CFGR_BATCH_DROP_ERROR;
    } else if (cfgr_equal(wanted, "parallel")) {
        output->execute_strategy = CFGR_PARALLEL;
        output->batch_error_strategy = CFGR_BATCH_CATCH_ERROR;
    }
    return NULL;
}

static cfgr_kubernetes apply(const char *name) {
    cfgr_json body = CFGR_OBJECT(
        {"apiVersion", cfgr_string("v1")},
        {"kind", cfgr_string("ConfigMap")},
        {"metadata", CFGR_OBJECT({"namespace", cfgr_string("shop")}, {"name", cfgr_string(name)})});
    return cfgr_kubernetes_apply(CFGR_CONFIG_MAP, "shop", name, body);
}

const cfgr_error *graph(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    output->execute_strategy = CFGR_GRAPH;
    cfgr_output_request(output, "a", apply("a"), .ready_when = cfgr_when_exists());
    cfgr_output_request(output, "b", apply("b"), .ready_when = cfgr_when_observed(), .depends_on = CFGR_NAMES("a"));
    cfgr_output_request(output, "c", apply("c"), .ready_when = cfgr_when("object.data.ready == 'yes'"),
                        .depends_on = CFGR_NAMES("a", "b"));
    cfgr_output_request(output, "d", apply("d"), .ready_when = cfgr_when_healthy(), .depends_on = CFGR_NAMES("c"));
    return NULL;
}
