#include "configurator/kubernetes.h"

#include "configurator/text.h"

const cfgr_resource CFGR_POD = {"", "v1", "pods", "Pod"};
const cfgr_resource CFGR_NODE = {"", "v1", "nodes", "Node"};
const cfgr_resource CFGR_NAMESPACE = {"", "v1", "namespaces", "Namespace"};
const cfgr_resource CFGR_CONFIG_MAP = {"", "v1", "configmaps", "ConfigMap"};
const cfgr_resource CFGR_SECRET = {"", "v1", "secrets", "Secret"};
const cfgr_resource CFGR_SERVICE = {"", "v1", "services", "Service"};
const cfgr_resource CFGR_DEPLOYMENT = {"apps", "v1", "deployments", "Deployment"};
const cfgr_resource CFGR_REPLICA_SET = {"apps", "v1", "replicasets", "ReplicaSet"};
const cfgr_resource CFGR_STATEFUL_SET = {"apps", "v1", "statefulsets", "StatefulSet"};
const cfgr_resource CFGR_DAEMON_SET = {"apps", "v1", "daemonsets", "DaemonSet"};
const cfgr_resource CFGR_JOB = {"batch", "v1", "jobs", "Job"};
const cfgr_resource CFGR_CRON_JOB = {"batch", "v1", "cronjobs", "CronJob"};

static const char *or_empty(const char *text) {
    return text == NULL ? "" : cfgr_copy(text);
}

const char *cfgr_api_version(cfgr_resource resource) {
    return *resource.group == '\0' ? cfgr_copy(resource.version) : cfgr_concat(resource.group, "/", resource.version);
}

cfgr_object_key cfgr_key(cfgr_resource resource, const char *namespace, const char *name) {
    return (cfgr_object_key){
        .group = resource.group,
        .version = resource.version,
        .plural = resource.plural,
        .namespace = or_empty(namespace),
        .name = or_empty(name),
    };
}

static cfgr_kubernetes request(cfgr_verb verb, cfgr_resource resource, const char *namespace, const char *name, const char *subresource) {
    return (cfgr_kubernetes){
        .verb = verb,
        .resource = resource,
        .namespace = or_empty(namespace),
        .name = or_empty(name),
        .subresource = cfgr_copy(subresource),
    };
}

/* One that changes or deletes what is stored, where that has this uid and version. */
static cfgr_kubernetes change(cfgr_kubernetes request, const char *uid, const char *resource_version) {
    request.uid = cfgr_copy(uid);
    request.resource_version = cfgr_copy(resource_version);
    return request;
}

cfgr_kubernetes cfgr_kubernetes_get_with(cfgr_resource resource, const char *namespace, const char *name, cfgr_get_options options) {
    cfgr_kubernetes get = request(CFGR_VERB_GET, resource, namespace, name, options.subresource);
    get.cached = options.cached;
    return get;
}

cfgr_kubernetes cfgr_kubernetes_list_with(cfgr_resource resource, const char *namespace, cfgr_list_options options) {
    cfgr_kubernetes list = request(CFGR_VERB_LIST, resource, namespace, NULL, options.subresource);
    list.label_selector = cfgr_copy(options.labels);
    list.field_selector = cfgr_copy(options.fields);
    list.cached = options.cached;
    return list;
}

cfgr_kubernetes cfgr_kubernetes_patch_with(
    cfgr_resource resource, const char *namespace, const char *name, cfgr_json patch, cfgr_patch_options options) {
    cfgr_kubernetes made = request(CFGR_VERB_PATCH, resource, namespace, name, options.subresource);
    made.body = cfgr_json_text(patch);
    made.patch_type = options.type;
    return change(made, options.uid, options.resource_version);
}

cfgr_kubernetes cfgr_kubernetes_delete_with(
    cfgr_resource resource, const char *namespace, const char *name, cfgr_delete_options options) {
    cfgr_kubernetes made = request(CFGR_VERB_DELETE, resource, namespace, name, options.subresource);
    made.propagation = options.propagation;
    return change(made, options.uid, options.resource_version);
}

cfgr_kubernetes cfgr_kubernetes_create_with(
    cfgr_resource resource, const char *namespace, const char *name, cfgr_json object, cfgr_create_options options) {
    cfgr_kubernetes made = request(CFGR_VERB_CREATE, resource, namespace, name, options.subresource);
    made.body = cfgr_json_text(object);
    made.must_not_exist = options.must_not_exist;
    return made;
}

cfgr_kubernetes cfgr_kubernetes_replace_with(
    cfgr_resource resource, const char *namespace, const char *name, cfgr_json object, cfgr_replace_options options) {
    cfgr_kubernetes made = request(CFGR_VERB_REPLACE, resource, namespace, name, options.subresource);
    made.body = cfgr_json_text(object);
    return change(made, options.uid, options.resource_version);
}

cfgr_kubernetes cfgr_kubernetes_apply_with(
    cfgr_resource resource, const char *namespace, const char *name, cfgr_json object, cfgr_apply_options options) {
    cfgr_kubernetes made = request(CFGR_VERB_APPLY, resource, namespace, name, options.subresource);
    made.body = cfgr_json_text(object);
    made.force = options.force;
    return change(made, options.uid, options.resource_version);
}
