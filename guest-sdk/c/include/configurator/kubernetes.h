/*
 * Requests to the Kubernetes API. Each verb has only the options that it knows.
 *
 *     cfgr_kubernetes_get(CFGR_NODE, NULL, "worker-1", .cached = true)
 *     cfgr_kubernetes_list(CFGR_POD, "shop", .labels = "app=web")
 *     cfgr_kubernetes_apply(CFGR_CONFIG_MAP, "shop", "web", body, .force = true)
 *
 * The namespace is NULL for what has none.
 */
#ifndef CONFIGURATOR_KUBERNETES_H
#define CONFIGURATOR_KUBERNETES_H

#include "compiler.h"
#include "json.h"

/* A kind of object, and where the API serves it. Its texts must live as long as the program: make it a constant. */
typedef struct cfgr_resource {
    /* Empty for the core group. */
    const char *group;
    /* Such as `v1`. */
    const char *version;
    /* The name in the path, such as `configmaps`. */
    const char *plural;
    /* The name in the object, such as `ConfigMap`. */
    const char *kind;
} cfgr_resource;

extern const cfgr_resource CFGR_POD;
extern const cfgr_resource CFGR_NODE;
extern const cfgr_resource CFGR_NAMESPACE;
extern const cfgr_resource CFGR_CONFIG_MAP;
extern const cfgr_resource CFGR_SECRET;
extern const cfgr_resource CFGR_SERVICE;
extern const cfgr_resource CFGR_DEPLOYMENT;
extern const cfgr_resource CFGR_REPLICA_SET;
extern const cfgr_resource CFGR_STATEFUL_SET;
extern const cfgr_resource CFGR_DAEMON_SET;
extern const cfgr_resource CFGR_JOB;
extern const cfgr_resource CFGR_CRON_JOB;

/* `group/version`, or only the version in the core group: what an object says in `apiVersion`. */
const char *cfgr_api_version(cfgr_resource resource);

typedef enum cfgr_verb {
    CFGR_VERB_GET,
    CFGR_VERB_LIST,
    CFGR_VERB_PATCH,
    CFGR_VERB_DELETE,
    CFGR_VERB_CREATE,
    CFGR_VERB_REPLACE,
    CFGR_VERB_APPLY,
} cfgr_verb;

/* How a patch is written. Default: merge. */
typedef enum cfgr_patch_type {
    CFGR_PATCH_UNSAID,
    CFGR_PATCH_MERGE,
    CFGR_PATCH_JSON,
    CFGR_PATCH_STRATEGIC,
} cfgr_patch_type;

/* What becomes of the objects that a deleted one owns. Default: deleted in the background. */
typedef enum cfgr_propagation {
    CFGR_PROPAGATION_UNSAID,
    CFGR_PROPAGATION_BACKGROUND,
    CFGR_PROPAGATION_FOREGROUND,
    CFGR_PROPAGATION_ORPHAN,
} cfgr_propagation;

/* A request to the Kubernetes API; made by the functions below. What is not said is NULL, 0 or false. */
typedef struct cfgr_kubernetes {
    cfgr_verb verb;
    cfgr_resource resource;
    const char *namespace;
    const char *name;
    const char *body;
    const char *subresource;
    const char *field_selector;
    const char *label_selector;
    const char *uid;
    const char *resource_version;
    cfgr_patch_type patch_type;
    cfgr_propagation propagation;
    bool must_not_exist;
    bool force;
    bool cached;
} cfgr_kubernetes;

/* What `get` may say. */
typedef struct cfgr_get_options {
    /* `status`, `scale` and the like. */
    const char *subresource;
    /* May be answered from the host's watch cache, which can be a moment behind. Default: read at the server. A host of this version
     * reads at the server all the same. */
    bool cached;
} cfgr_get_options;

/* Reads one object. */
#define cfgr_kubernetes_get(resource, in_namespace, named, ...) \
    cfgr_kubernetes_get_with((resource), (in_namespace), (named), (cfgr_get_options){__VA_ARGS__})

/* What `list` may say. */
typedef struct cfgr_list_options {
    /* Only objects whose labels match. */
    const char *labels;
    /* Only objects whose fields match. */
    const char *fields;
    const char *subresource;
    /* As for `get`. */
    bool cached;
} cfgr_list_options;

/* Reads the objects of a namespace; of the whole cluster where the namespace is NULL. */
#define cfgr_kubernetes_list(resource, in_namespace, ...) \
    cfgr_kubernetes_list_with((resource), (in_namespace), (cfgr_list_options){__VA_ARGS__})

/* What `patch` may say. */
typedef struct cfgr_patch_options {
    cfgr_patch_type type;
    const char *subresource;
    /* A conflict unless the stored object has this uid. */
    const char *uid;
    /* A conflict unless the stored object has this resource version. */
    const char *resource_version;
} cfgr_patch_options;

/* Changes parts of an object, by a merge patch unless `type` says otherwise. */
#define cfgr_kubernetes_patch(resource, in_namespace, named, patch, ...) \
    cfgr_kubernetes_patch_with((resource), (in_namespace), (named), (patch), (cfgr_patch_options){__VA_ARGS__})

/* What `delete` may say. */
typedef struct cfgr_delete_options {
    cfgr_propagation propagation;
    const char *subresource;
    /* As for `patch`. */
    const char *uid;
    const char *resource_version;
} cfgr_delete_options;

/* Deletes an object. One that is absent is success. */
#define cfgr_kubernetes_delete(resource, in_namespace, named, ...) \
    cfgr_kubernetes_delete_with((resource), (in_namespace), (named), (cfgr_delete_options){__VA_ARGS__})

/* What `create` may say. */
typedef struct cfgr_create_options {
    /* An object that exists is a conflict. Default: it is success, and is the result. */
    bool must_not_exist;
    const char *subresource;
} cfgr_create_options;

/* Creates an object. One that exists is success, unless `must_not_exist` is set. */
#define cfgr_kubernetes_create(resource, in_namespace, named, object, ...) \
    cfgr_kubernetes_create_with((resource), (in_namespace), (named), (object), (cfgr_create_options){__VA_ARGS__})

/* What `replace` may say. */
typedef struct cfgr_replace_options {
    const char *subresource;
    /* As for `patch`. */
    const char *uid;
    const char *resource_version;
} cfgr_replace_options;

/* Replaces an object as a whole. A custom resource needs its version: in the object, or as `resource_version`. */
#define cfgr_kubernetes_replace(resource, in_namespace, named, object, ...) \
    cfgr_kubernetes_replace_with((resource), (in_namespace), (named), (object), (cfgr_replace_options){__VA_ARGS__})

/* What `apply` may say. */
typedef struct cfgr_apply_options {
    /* Takes fields from other managers. Default: a field of another manager is a conflict. */
    bool force;
    const char *subresource;
    /* As for `patch`. */
    const char *uid;
    const char *resource_version;
} cfgr_apply_options;

/* Server-side apply: the fields of `object` become ours, and those that we had applied before and that are missing now go. */
#define cfgr_kubernetes_apply(resource, in_namespace, named, object, ...) \
    cfgr_kubernetes_apply_with((resource), (in_namespace), (named), (object), (cfgr_apply_options){__VA_ARGS__})

/* Any object of the cluster. */
typedef struct cfgr_object_key {
    const char *group;
    const char *version;
    const char *plural;
    /* Empty for an object without. */
    const char *namespace;
    const char *name;
} cfgr_object_key;

/* Names an object for cfgr_output_wait, to wait until it changes. */
cfgr_object_key cfgr_key(cfgr_resource resource, const char *namespace, const char *name);

/* What the macros call. */
cfgr_kubernetes cfgr_kubernetes_get_with(cfgr_resource resource, const char *namespace, const char *name, cfgr_get_options options);
cfgr_kubernetes cfgr_kubernetes_list_with(cfgr_resource resource, const char *namespace, cfgr_list_options options);
cfgr_kubernetes cfgr_kubernetes_patch_with(
    cfgr_resource resource, const char *namespace, const char *name, cfgr_json patch, cfgr_patch_options options);
cfgr_kubernetes cfgr_kubernetes_delete_with(
    cfgr_resource resource, const char *namespace, const char *name, cfgr_delete_options options);
cfgr_kubernetes cfgr_kubernetes_create_with(
    cfgr_resource resource, const char *namespace, const char *name, cfgr_json object, cfgr_create_options options);
cfgr_kubernetes cfgr_kubernetes_replace_with(
    cfgr_resource resource, const char *namespace, const char *name, cfgr_json object, cfgr_replace_options options);
cfgr_kubernetes cfgr_kubernetes_apply_with(
    cfgr_resource resource, const char *namespace, const char *name, cfgr_json object, cfgr_apply_options options);

#endif
