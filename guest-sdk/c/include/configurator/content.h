/*
 * Contents of the entries of a set: a Kubernetes object, a value of the config store, or a secret.
 *
 *     cfgr_entry_content(cfgr_pod_entry("shop", "web-1", .uid = "6e2d"), "{\"tier\": \"gold\"}")
 *     cfgr_basic_content("region", "north", .partition = "team-a")
 *     cfgr_secret_content("shop-db")
 *
 * A Kubernetes object is a cfgr_json with `apiVersion`, `kind` and `metadata.name`.
 */
#ifndef CONFIGURATOR_CONTENT_H
#define CONFIGURATOR_CONTENT_H

#include "compiler.h"
#include "configstore.h"
#include "json.h"

/* The value of a key of the config store; made by the macros below. The host keeps the layers above the key. */
typedef struct cfgr_config_content {
    cfgr_config_kind kind;
    union {
        cfgr_entry entry;
        cfgr_app_conf app_conf;
        const char *basic;
        cfgr_two_layers two_layers;
    };
    const char *value;
    /* As in a request. */
    const char *partition;
} cfgr_config_content;

/* A secret of the secret store; made by the macros below, of which one has the same name. */
typedef struct cfgr_secret_content {
    const char *name;
    /* A document. NULL: the host generates a value once, and it stays. */
    const char *value;
    /* As in a request. */
    const char *partition;
} cfgr_secret_content;

typedef enum cfgr_content_kind {
    CFGR_CONTENT_KUBERNETES,
    CFGR_CONTENT_CONFIG,
    CFGR_CONTENT_SECRET,
} cfgr_content_kind;

/* The content of an entry. */
typedef struct cfgr_content {
    cfgr_content_kind kind;
    union {
        /* The document of an object. */
        const char *kubernetes;
        cfgr_config_content config;
        cfgr_secret_content secret;
    };
} cfgr_content;

/* Options of contents of the config store and the secret store. */
typedef struct cfgr_content_options {
    /* The namespace whose partition is meant. NULL: the Configurator's own partition. */
    const char *partition;
} cfgr_content_options;

/* The configuration of a cluster resource, with this value. With a uid, an entry of another uid is replaced, with what hangs on it. */
#define cfgr_entry_content(entry, value, ...) cfgr_entry_content_of((entry), (value), (cfgr_content_options){__VA_ARGS__})
/* A key of the application configuration, with this value. */
#define cfgr_app_conf_content(key, value, ...) cfgr_app_conf_content_of((key), (value), (cfgr_content_options){__VA_ARGS__})
/* A key that stands by itself, with this value. */
#define cfgr_basic_content(key, value, ...) cfgr_basic_content_of((key), (value), (cfgr_content_options){__VA_ARGS__})
/* A leaf under two levels of path, with this value. */
#define cfgr_two_layers_content(second, third, value, ...) \
    cfgr_two_layers_content_of((second), (third), (value), (cfgr_content_options){__VA_ARGS__})

/* A secret with a value that the host generates once. */
#define cfgr_secret_content(name, ...) cfgr_secret_content_generated((name), (cfgr_content_options){__VA_ARGS__})
/* A secret with this value. A value that is absent is a mistake of the handler, and ends the call: cfgr_null() is one. */
#define cfgr_secret_content_with(name, value, ...) cfgr_secret_content_given((name), (value), (cfgr_content_options){__VA_ARGS__})

/* Converts a cfgr_json, a cfgr_config_content, a cfgr_secret_content or a cfgr_content to a cfgr_content. */
#define CFGR_CONTENT(what)                            \
    _Generic((what),                                  \
        cfgr_json: cfgr_content_of_kubernetes,        \
        cfgr_config_content: cfgr_content_of_config,  \
        cfgr_secret_content: cfgr_content_of_secret,  \
        cfgr_content: cfgr_content_of_content)(what)

/* What the macros call. */
cfgr_config_content cfgr_entry_content_of(cfgr_entry entry, const char *value, cfgr_content_options options);
cfgr_config_content cfgr_app_conf_content_of(cfgr_app_conf key, const char *value, cfgr_content_options options);
cfgr_config_content cfgr_basic_content_of(const char *key, const char *value, cfgr_content_options options);
cfgr_config_content cfgr_two_layers_content_of(
    const char *second, const char *third, const char *value, cfgr_content_options options);
cfgr_secret_content cfgr_secret_content_generated(const char *name, cfgr_content_options options);
cfgr_secret_content cfgr_secret_content_given(const char *name, cfgr_json value, cfgr_content_options options);
cfgr_content cfgr_content_of_kubernetes(cfgr_json object);
cfgr_content cfgr_content_of_config(cfgr_config_content config);
cfgr_content cfgr_content_of_secret(cfgr_secret_content secret);
cfgr_content cfgr_content_of_content(cfgr_content content);

#endif
