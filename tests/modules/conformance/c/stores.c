/* Requests to the config store and the secret store. */
#include "conformance.h"

const cfgr_error *config_entries(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_output_request(output, "get-pod", cfgr_entry_get(cfgr_pod_entry("shop", "web")));
    cfgr_output_request(output, "create-node", cfgr_entry_create(cfgr_node_entry("node-1"), "a"));
    cfgr_output_request(output, "update-namespace", cfgr_entry_update(cfgr_namespace_entry("shop"), "b"));
    cfgr_output_request(output, "update-workload",
                        cfgr_entry_update(cfgr_workload_entry("shop", "StatefulSet", "db", .uid = "4a0f"), "c"));
    cfgr_output_request(output, "delete-workload", cfgr_entry_delete(cfgr_workload_entry("shop", "Deployment", "web", .uid = "77")));
    return NULL;
}

const cfgr_error *config_app_conf(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_app_conf level = cfgr_app_conf_key("web", "log.level", .namespace = "shop");
    cfgr_output_request(output, "create", cfgr_app_conf_create(cfgr_app_conf_key("web", "log.level"), "info"));
    cfgr_output_request(output, "update", cfgr_app_conf_update(level, "debug"));
    cfgr_output_request(output, "delete", cfgr_app_conf_delete(level));
    return NULL;
}

const cfgr_error *config_basic(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_output_request(output, "get", cfgr_basic_get("region"));
    cfgr_output_request(output, "put", cfgr_basic_put("region", "north"));
    cfgr_output_request(output, "delete", cfgr_basic_delete("a/b c"));
    return NULL;
}

const cfgr_error *config_two_layers(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_output_request(output, "get", cfgr_two_layers_get("teams", "red"));
    cfgr_output_request(output, "create", cfgr_two_layers_create("teams", "red", "1"));
    cfgr_output_request(output, "update", cfgr_two_layers_update("teams", "red", "2"));
    cfgr_output_request(output, "delete", cfgr_two_layers_delete("teams", "red"));
    return NULL;
}

const cfgr_error *config_transaction(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_transaction all = CFGR_TRANSACTION(
        cfgr_entry_update(cfgr_pod_entry("shop", "web"), "entry"),
        cfgr_app_conf_create(cfgr_app_conf_key("web", "mode", .namespace = "shop"), "fast"),
        cfgr_basic_put("count", "7"),
        cfgr_two_layers_delete("teams", "red"));
    cfgr_output_request(output, "all", all);
    return NULL;
}

const cfgr_error *secrets(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_json value = CFGR_OBJECT({"user", cfgr_string("app")}, {"password", cfgr_string("p\"w")});
    cfgr_output_request(output, "get", cfgr_secret_get("db"));
    cfgr_output_request(output, "create", cfgr_secret_create("db"));
    cfgr_output_request(output, "create-with", cfgr_secret_create_with("db", value));
    cfgr_output_request(output, "update", cfgr_secret_update("db", 3));
    cfgr_output_request(output, "update-with", cfgr_secret_update_with("db", 0, cfgr_string("p")));
    cfgr_output_request(output, "delete", cfgr_secret_delete("db"));
    return NULL;
}
