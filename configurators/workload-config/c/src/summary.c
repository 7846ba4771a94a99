/* What is stored of a Deployment. */
#include "workload_config.h"

/* What the key of an annotation begins with, to be configuration. */
#define PREFIX "config.configurator.dev/"

/* Lays the configuration among the annotations over what there is. */
static void lay(cfgr_members *config, cfgr_json annotations) {
    for (size_t i = 0; i < annotations.count; i++) {
        cfgr_member annotation = cfgr_member_at(annotations, i);
        const char *key = cfgr_after(annotation.key, PREFIX);
        if (key != NULL) {
            /* Made anew, because the text that is stored must not depend on how the annotation was escaped. */
            cfgr_members_set(config, key, cfgr_string(cfgr_as_string(annotation.value)));
        }
    }
}

static const cfgr_error *ports_of(cfgr_json container, cfgr_json *result) {
    cfgr_items ports = {0};
    cfgr_json declared = cfgr_get(container, "ports");
    for (size_t i = 0; i < declared.count; i++) {
        uint64_t port;
        if (!cfgr_as_uint64(cfgr_get(cfgr_item(declared, i), "containerPort"), &port)) {
            return cfgr_fatal("a port of a container has no number");
        }
        cfgr_items_add(&ports, cfgr_unsigned(port));
    }
    *result = cfgr_array(&ports);
    return NULL;
}

/* The names of the variables. Values are not read: they may be secrets. */
static const cfgr_error *environment_of(cfgr_json container, cfgr_json *result) {
    cfgr_items names = {0};
    cfgr_json variables = cfgr_get(container, "env");
    for (size_t i = 0; i < variables.count; i++) {
        const char *name;
        CFGR_TRY(cfgr_need_string(cfgr_item(variables, i), "/name", &name));
        cfgr_items_add(&names, cfgr_string(name));
    }
    *result = cfgr_array(&names);
    return NULL;
}

static const cfgr_error *container_of(cfgr_json container, cfgr_json *result) {
    const char *name;
    cfgr_json ports;
    cfgr_json environment;
    CFGR_TRY(cfgr_need_string(container, "/name", &name));
    CFGR_TRY(ports_of(container, &ports));
    CFGR_TRY(environment_of(container, &environment));
    *result = CFGR_OBJECT(
        {"name", cfgr_string(name)},
        {"image", cfgr_string(cfgr_string_or(cfgr_get(container, "image"), ""))},
        {"ports", ports},
        {"env", environment});
    return NULL;
}

const cfgr_error *summary_of(cfgr_json deployment, cfgr_json namespace_annotations, const char **result) {
    cfgr_json pod = cfgr_at(deployment, "/spec/template/spec");
    if (pod.type != CFGR_TYPE_OBJECT) {
        return cfgr_fatal("a Deployment has no Pod template");
    }
    uint64_t replicas = 1;
    cfgr_as_uint64(cfgr_at(deployment, "/spec/replicas"), &replicas);
    cfgr_items containers = {0};
    cfgr_json declared = cfgr_get(pod, "containers");
    for (size_t i = 0; i < declared.count; i++) {
        cfgr_json container;
        CFGR_TRY(container_of(cfgr_item(declared, i), &container));
        cfgr_items_add(&containers, container);
    }
    cfgr_members config = {0};
    lay(&config, namespace_annotations);
    lay(&config, cfgr_at(deployment, "/metadata/annotations"));
    cfgr_members_sort(&config);
    *result = cfgr_json_text(CFGR_OBJECT(
        {"replicas", cfgr_unsigned(replicas)},
        {"serviceAccount", cfgr_string(cfgr_string_or(cfgr_get(pod, "serviceAccountName"), "default"))},
        {"containers", cfgr_array(&containers)},
        {"config", cfgr_object(&config)}));
    return NULL;
}
