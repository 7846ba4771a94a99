/*
 * Requests to the config store.
 *
 * A request names only the leaf: the host keeps the layers above it. Deleting what is absent is success.
 *
 *     cfgr_entry pod = cfgr_pod_entry("shop", "web-1", .uid = "6e2d");
 *     cfgr_output_request(output, "write", CFGR_TRANSACTION(
 *         cfgr_entry_update(pod, "{\"tier\": \"gold\"}"),
 *         cfgr_app_conf_update(cfgr_app_conf_key("web-1", "tier", .namespace = "shop"), "gold"),
 *         cfgr_two_layers_create("shop/web", "web-1", "6e2d")));
 *     cfgr_output_request(output, "read", cfgr_entry_get(pod), .on_error = CFGR_CATCH_ERROR);
 */
#ifndef CONFIGURATOR_CONFIGSTORE_H
#define CONFIGURATOR_CONFIGSTORE_H

#include "compiler.h"

typedef enum cfgr_entry_type {
    CFGR_ENTRY_POD,
    CFGR_ENTRY_NODE,
    CFGR_ENTRY_NAMESPACE,
    CFGR_ENTRY_WORKLOAD,
} cfgr_entry_type;

/* The configuration of one cluster resource. */
typedef struct cfgr_entry {
    cfgr_entry_type type;
    const char *namespace;
    const char *workload_kind;
    const char *name;
    /* The resource's uid, or NULL. With it a write replaces the entry of an older uid and what hangs on it, and a `get` finds only this
     * uid. */
    const char *uid;
} cfgr_entry;

/* That of a Pod. What may be said: `.uid`. */
#define cfgr_pod_entry(in_namespace, named, ...) \
    ((cfgr_entry){.type = CFGR_ENTRY_POD, .namespace = (in_namespace), .name = (named)__VA_OPT__(, ) __VA_ARGS__})
/* That of a Node. */
#define cfgr_node_entry(named, ...) ((cfgr_entry){.type = CFGR_ENTRY_NODE, .name = (named)__VA_OPT__(, ) __VA_ARGS__})
/* That of a Namespace. */
#define cfgr_namespace_entry(named, ...) ((cfgr_entry){.type = CFGR_ENTRY_NAMESPACE, .name = (named)__VA_OPT__(, ) __VA_ARGS__})
/* That of a workload of this kind: `Deployment`, `StatefulSet` and the like. */
#define cfgr_workload_entry(in_namespace, kind, named, ...)                                                                \
    ((cfgr_entry){.type = CFGR_ENTRY_WORKLOAD, .namespace = (in_namespace), .workload_kind = (kind), .name = (named)__VA_OPT__(, ) \
                      __VA_ARGS__})

/* One key of the application configuration that belongs to a Pod and is deleted with its entry. */
typedef struct cfgr_app_conf {
    const char *pod;
    const char *key;
    /* The Pod's namespace; NULL: that of the object being handled. */
    const char *namespace;
} cfgr_app_conf;

/* A key of this Pod. What may be said: `.namespace`. */
#define cfgr_app_conf_key(of_pod, named, ...) ((cfgr_app_conf){.pod = (of_pod), .key = (named)__VA_OPT__(, ) __VA_ARGS__})

/* A leaf under two levels of path. The host creates and removes the levels. */
typedef struct cfgr_two_layers {
    const char *second;
    const char *third;
} cfgr_two_layers;

typedef enum cfgr_config_kind {
    CFGR_CONFIG_ENTRY,
    CFGR_CONFIG_APP_CONF,
    CFGR_CONFIG_BASIC,
    CFGR_CONFIG_TWO_LAYERS,
} cfgr_config_kind;

typedef enum cfgr_config_verb {
    CFGR_CONFIG_GET,
    CFGR_CONFIG_CREATE,
    CFGR_CONFIG_UPDATE,
    CFGR_CONFIG_DELETE,
} cfgr_config_verb;

/* An operation of the config store; made by the functions below. */
typedef struct cfgr_config {
    cfgr_config_kind kind;
    cfgr_config_verb verb;
    union {
        cfgr_entry entry;
        cfgr_app_conf app_conf;
        const char *basic;
        cfgr_two_layers two_layers;
    };
    /* NULL unless the verb writes. */
    const char *value;
} cfgr_config;

/* Reads the entry: `{"key", "uid"?, "value"}`. */
cfgr_config cfgr_entry_get(cfgr_entry entry);
/* Writes the entry unless it exists; one that exists is success. */
cfgr_config cfgr_entry_create(cfgr_entry entry, const char *value);
cfgr_config cfgr_entry_update(cfgr_entry entry, const char *value);
/* Deletes the entry and what hangs on it. */
cfgr_config cfgr_entry_delete(cfgr_entry entry);

/* Writes the key unless it exists; one that exists is success. */
cfgr_config cfgr_app_conf_create(cfgr_app_conf key, const char *value);
cfgr_config cfgr_app_conf_update(cfgr_app_conf key, const char *value);
cfgr_config cfgr_app_conf_delete(cfgr_app_conf key);

/* Reads a key that stands by itself: `{"key", "value"}`. */
cfgr_config cfgr_basic_get(const char *key);
cfgr_config cfgr_basic_put(const char *key, const char *value);
cfgr_config cfgr_basic_delete(const char *key);

/* Reads the leaf: `{"key", "value"}`. */
cfgr_config cfgr_two_layers_get(const char *second, const char *third);
/* Writes the leaf unless it exists; one that exists is success. */
cfgr_config cfgr_two_layers_create(const char *second, const char *third, const char *value);
cfgr_config cfgr_two_layers_update(const char *second, const char *third, const char *value);
cfgr_config cfgr_two_layers_delete(const char *second, const char *third);

/* Operations of which all happen, or none. Begin with `cfgr_transaction all = {0}`, or with CFGR_TRANSACTION. */
typedef struct cfgr_transaction {
    cfgr_config *operations;
    size_t count;
    size_t capacity;
} cfgr_transaction;

/* A transaction of these operations. */
#define CFGR_TRANSACTION(...)                                             \
    cfgr_transaction_of((const cfgr_config[]){__VA_ARGS__},               \
                        sizeof((const cfgr_config[]){__VA_ARGS__}) / sizeof(cfgr_config))

void cfgr_transaction_add(cfgr_transaction *transaction, cfgr_config operation);

/* What the macro calls. */
cfgr_transaction cfgr_transaction_of(const cfgr_config *operations, size_t count);

#endif
