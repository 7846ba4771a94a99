/* Requests to Kubernetes. */
#include "conformance.h"

static const cfgr_resource WIDGET = {"example.com", "v1beta1", "widgets", "Widget"};

static cfgr_json config_map(const char *name) {
    return CFGR_OBJECT(
        {"apiVersion", cfgr_string("v1")},
        {"kind", cfgr_string("ConfigMap")},
        {"metadata", CFGR_OBJECT({"namespace", cfgr_string("shop")}, {"name", cfgr_string(name)})},
        {"data", CFGR_OBJECT({"key", cfgr_string("value")})});
}

const cfgr_error *kubernetes_reads(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_output_request(output, "get", cfgr_kubernetes_get(CFGR_POD, "shop", "web"));
    cfgr_output_request(output, "get-cached", cfgr_kubernetes_get(CFGR_NODE, NULL, "node-1", .cached = true));
    cfgr_output_request(output, "get-scale", cfgr_kubernetes_get(CFGR_DEPLOYMENT, "shop", "web", .subresource = "scale"));
    cfgr_output_request(output, "list", cfgr_kubernetes_list(CFGR_POD, "shop"));
    cfgr_output_request(output, "list-selected",
                        cfgr_kubernetes_list(CFGR_POD, NULL, .labels = "app=web,tier!=cache", .fields = "status.phase=Running",
                                             .cached = true));
    return NULL;
}

const cfgr_error *kubernetes_writes(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_json widget = CFGR_OBJECT(
        {"apiVersion", cfgr_string(cfgr_api_version(WIDGET))},
        {"kind", cfgr_string("Widget")},
        {"metadata", CFGR_OBJECT({"namespace", cfgr_string("shop")}, {"name", cfgr_string("w")})},
        {"status", CFGR_OBJECT({"ready", cfgr_bool(true)})});
    cfgr_output_request(output, "create", cfgr_kubernetes_create(CFGR_CONFIG_MAP, "shop", "a", config_map("a")));
    cfgr_output_request(output, "create-new",
                        cfgr_kubernetes_create(CFGR_CONFIG_MAP, "shop", "b", config_map("b"), .must_not_exist = true));
    cfgr_output_request(output, "replace",
                        cfgr_kubernetes_replace(CFGR_CONFIG_MAP, "shop", "c", config_map("c"), .uid = "4a0f", .resource_version = "17"));
    cfgr_output_request(output, "apply", cfgr_kubernetes_apply(CFGR_CONFIG_MAP, "shop", "d", config_map("d")));
    cfgr_output_request(output, "apply-status",
                        cfgr_kubernetes_apply(WIDGET, "shop", "w", widget, .force = true, .subresource = "status", .uid = "77"));
    return NULL;
}

const cfgr_error *kubernetes_patches(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_json merge = CFGR_OBJECT({"data", CFGR_OBJECT({"key", cfgr_null()})});
    cfgr_json json = CFGR_ARRAY(
        CFGR_OBJECT({"op", cfgr_string("add")}, {"path", cfgr_string("/data/new")}, {"value", cfgr_string("1")}));
    cfgr_json containers = CFGR_ARRAY(CFGR_OBJECT({"name", cfgr_string("web")}, {"image", cfgr_string("web:2")}));
    cfgr_json pod = CFGR_OBJECT({"spec", CFGR_OBJECT({"containers", containers})});
    cfgr_json strategic = CFGR_OBJECT({"spec", CFGR_OBJECT({"template", pod})});
    cfgr_json status = CFGR_OBJECT({"status", CFGR_OBJECT({"replicas", cfgr_integer(0)})});
    cfgr_output_request(output, "merge", cfgr_kubernetes_patch(CFGR_CONFIG_MAP, "shop", "a", merge));
    cfgr_output_request(output, "json-patch",
                        cfgr_kubernetes_patch(CFGR_CONFIG_MAP, "shop", "a", json, .type = CFGR_PATCH_JSON, .resource_version = "9"));
    cfgr_output_request(output, "strategic",
                        cfgr_kubernetes_patch(CFGR_DEPLOYMENT, "shop", "web", strategic, .type = CFGR_PATCH_STRATEGIC, .uid = "4a0f"));
    cfgr_output_request(output, "status",
                        cfgr_kubernetes_patch(CFGR_DEPLOYMENT, "shop", "web", status, .type = CFGR_PATCH_MERGE, .subresource = "status"));
    return NULL;
}

const cfgr_error *kubernetes_deletes(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_output_request(output, "delete", cfgr_kubernetes_delete(CFGR_POD, "shop", "web"));
    cfgr_output_request(output, "foreground",
                        cfgr_kubernetes_delete(CFGR_DEPLOYMENT, "shop", "web", .propagation = CFGR_PROPAGATION_FOREGROUND));
    cfgr_output_request(output, "orphan",
                        cfgr_kubernetes_delete(CFGR_DEPLOYMENT, "shop", "old", .propagation = CFGR_PROPAGATION_ORPHAN, .uid = "4a0f"));
    cfgr_output_request(output, "background",
                        cfgr_kubernetes_delete(CFGR_NAMESPACE, NULL, "shop", .propagation = CFGR_PROPAGATION_BACKGROUND,
                                               .resource_version = "3"));
    return NULL;
}

const cfgr_error *kubernetes_types(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    const cfgr_resource types[] = {
        CFGR_POD,         CFGR_NODE,         CFGR_NAMESPACE,  CFGR_CONFIG_MAP, CFGR_SECRET,   CFGR_SERVICE, CFGR_DEPLOYMENT,
        CFGR_REPLICA_SET, CFGR_STATEFUL_SET, CFGR_DAEMON_SET, CFGR_JOB,        CFGR_CRON_JOB, WIDGET,
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        cfgr_output_request(output, types[i].kind, cfgr_kubernetes_get(types[i], "shop", "one"));
    }
    return NULL;
}
