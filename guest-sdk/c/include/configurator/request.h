/* One wish, and the options that every request has. */
#ifndef CONFIGURATOR_REQUEST_H
#define CONFIGURATOR_REQUEST_H

#include "compiler.h"
#include "configstore.h"
#include "http.h"
#include "kubernetes.h"
#include "secretstore.h"

/* One object of a batch. */
typedef struct cfgr_object_ref {
    /* Empty or NULL for an object without. */
    const char *namespace;
    const char *name;
} cfgr_object_ref;

typedef struct cfgr_names {
    const char *const *items;
    size_t count;
} cfgr_names;

/* Names for a field: `.depends_on = CFGR_NAMES("a", "b")`. */
#define CFGR_NAMES(...) \
    ((cfgr_names){(const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)})

/* What becomes of a failed request. */
typedef enum cfgr_on_error {
    /* As CFGR_FAIL; with `group_by`, what the output's `batch_error_strategy` says. */
    CFGR_ON_ERROR_UNSAID,
    /* The phase fails with it. */
    CFGR_FAIL,
    /*
     * The next handler gets its result with `error` set. In the last phase a caught failure fails the run. An outage of the Kubernetes API
     * or of a store is not caught: nothing was answered, and the run waits.
     */
    CFGR_CATCH_ERROR,
    /* The next handler gets no result. An outage of the Kubernetes API or of a store is not dropped: the run waits. */
    CFGR_DROP_ERROR,
} cfgr_on_error;

typedef enum cfgr_readiness_kind {
    CFGR_READINESS_UNSAID,
    CFGR_READINESS_EXISTS,
    CFGR_READINESS_OBSERVED,
    CFGR_READINESS_EXPRESSION,
} cfgr_readiness_kind;

/* When others may go on. Made by the functions below. */
typedef struct cfgr_readiness {
    cfgr_readiness_kind kind;
    const char *expression;
} cfgr_readiness;

/* It exists. */
cfgr_readiness cfgr_when_exists(void);
/* It exists, and `status.observedGeneration`, where present, is its generation. This is the default. */
cfgr_readiness cfgr_when_observed(void);
/* A CEL expression over `object` is true. */
cfgr_readiness cfgr_when(const char *expression);

typedef enum cfgr_operation_kind {
    CFGR_OPERATION_KUBERNETES,
    CFGR_OPERATION_CONFIG,
    CFGR_OPERATION_TRANSACTION,
    CFGR_OPERATION_SECRET,
    CFGR_OPERATION_HTTP,
} cfgr_operation_kind;

typedef struct cfgr_operation {
    cfgr_operation_kind kind;
    union {
        cfgr_kubernetes kubernetes;
        cfgr_config config;
        cfgr_transaction transaction;
        cfgr_secret secret;
        cfgr_http_request http;
    };
} cfgr_operation;

/* A request; added to an output by cfgr_output_request. */
typedef struct cfgr_request {
    /* Names the request and its result. Used once in an output, and different from every `group_by`: the host refuses it otherwise. */
    const char *name;
    cfgr_operation operation;
    /* The results of all requests with this key arrive together. */
    const char *group_by;
    /* In a batch, the object that it is for: a failure is charged to it alone. `.of = {namespace, name}`. */
    cfgr_object_ref of;
    cfgr_on_error on_error;
    /* Names of requests that must be ready first. Only with the strategy `graph`, which a chain refuses. */
    cfgr_names depends_on;
    /* When those that depend on it may go on. Only with the strategy `graph`. */
    cfgr_readiness ready_when;
    /* How long one attempt may take; 0: as long as the sink says, which is 30 s. */
    uint64_t timeout_ms;
    /*
     * The namespace whose partition of the config store or the secret store is meant. Only in a ClusterConfigurator with a rule that names
     * the namespace. NULL: the Configurator's own partition.
     */
    const char *partition;
    /* The phase does not wait for it, and the host retries it by itself until a later one for the same target takes its place. Only for
     * requests that change something. */
    bool is_declarative;
    /* The host is not ready until it has succeeded for every object that existed at start. */
    bool bootstrap_dep;
    /* Never sent a second time, even where the answer was lost. Refused in a chain: make the request one that may be sent again. */
    bool once;
} cfgr_request;

/* What a request asks for, of whichever store or server. */
#define CFGR_OPERATION(what)                           \
    _Generic((what),                                   \
        cfgr_kubernetes: cfgr_operation_of_kubernetes, \
        cfgr_config: cfgr_operation_of_config,         \
        cfgr_transaction: cfgr_operation_of_transaction, \
        cfgr_secret: cfgr_operation_of_secret,         \
        cfgr_http_request: cfgr_operation_of_http)(what)

/* What the macro calls. */
cfgr_operation cfgr_operation_of_kubernetes(cfgr_kubernetes kubernetes);
cfgr_operation cfgr_operation_of_config(cfgr_config config);
cfgr_operation cfgr_operation_of_transaction(cfgr_transaction transaction);
cfgr_operation cfgr_operation_of_secret(cfgr_secret secret);
cfgr_operation cfgr_operation_of_http(cfgr_http_request http);

#endif
