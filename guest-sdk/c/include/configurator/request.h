/* One wish, and the options that every request has. */
#ifndef CONFIGURATOR_REQUEST_H
#define CONFIGURATOR_REQUEST_H

#include "compiler.h"
#include "configstore.h"
#include "extension.h"
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
    CFGR_READINESS_HEALTHY,
    CFGR_READINESS_EXPRESSION,
} cfgr_readiness_kind;

/* When a thing is ready, so that what depends on it may go on. Made by the functions below. */
typedef struct cfgr_readiness {
    cfgr_readiness_kind kind;
    const char *expression;
} cfgr_readiness;

/* It exists. */
cfgr_readiness cfgr_when_exists(void);
/* It exists, and `status.observedGeneration`, where present, is its generation. This is the default of requests. */
cfgr_readiness cfgr_when_observed(void);
/* It is observed, and healthy by the rules of its kind: a Deployment has its replicas, a Job is complete, a volume claim is bound. */
cfgr_readiness cfgr_when_healthy(void);
/* A CEL expression over `object` is true. */
cfgr_readiness cfgr_when(const char *expression);

typedef enum cfgr_operation_kind {
    CFGR_OPERATION_KUBERNETES,
    CFGR_OPERATION_CONFIG,
    CFGR_OPERATION_TRANSACTION,
    CFGR_OPERATION_SECRET,
    CFGR_OPERATION_HTTP,
    CFGR_OPERATION_EXTENSION,
} cfgr_operation_kind;

typedef struct cfgr_operation {
    cfgr_operation_kind kind;
    union {
        cfgr_kubernetes kubernetes;
        cfgr_config config;
        cfgr_transaction transaction;
        cfgr_secret secret;
        cfgr_http_request http;
        cfgr_extension extension;
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
    /* Names of requests that must be ready first. Only with the strategy `graph`, and before a deletion,
     * in cfgr_output_pre_terminate. */
    cfgr_names depends_on;
    /* When those that depend on it may go on. Only where there may be `depends_on`. */
    cfgr_readiness ready_when;
    /* How long one attempt may take; 0: as long as the sink says, which is 30 s. */
    uint64_t timeout_ms;
    /*
     * For the config store and the secret store: the namespace whose partition is meant. NULL: the Configurator's own partition. A
     * Configurator may name its own namespace only, and a ClusterConfigurator those that a rule of its capabilities names.
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

/* A list of requests. */
typedef struct cfgr_requests {
    cfgr_request *items;
    size_t count, capacity;
} cfgr_requests;

typedef enum cfgr_execute_strategy {
    /* As CFGR_PARALLEL. */
    CFGR_EXECUTE_UNSAID,
    /* In order; the first failure that nothing catches (`on_error`, `group_by`) stops the rest. */
    CFGR_SERIAL,
    /* Side by side, within the configurator's concurrency limit. */
    CFGR_PARALLEL,
    /* Each when what it names in `depends_on` is ready. */
    CFGR_GRAPH,
} cfgr_execute_strategy;

/* What becomes of a failed request that has a `group_by` and says no `on_error`. */
typedef enum cfgr_batch_error_strategy {
    /* As CFGR_BATCH_CATCH_ERROR. */
    CFGR_BATCH_UNSAID,
    /* Its result is left out of the group. */
    CFGR_BATCH_DROP_ERROR,
    /* Its result joins the group with `error` set. */
    CFGR_BATCH_CATCH_ERROR,
} cfgr_batch_error_strategy;

/* What a request asks for, of whichever store or server. */
#define CFGR_OPERATION(what)                             \
    _Generic((what),                                     \
        cfgr_kubernetes: cfgr_operation_of_kubernetes,   \
        cfgr_config: cfgr_operation_of_config,           \
        cfgr_transaction: cfgr_operation_of_transaction, \
        cfgr_secret: cfgr_operation_of_secret,           \
        cfgr_http_request: cfgr_operation_of_http,       \
        cfgr_extension: cfgr_operation_of_extension)(what)

/* What the macro calls. */
cfgr_operation cfgr_operation_of_kubernetes(cfgr_kubernetes kubernetes);
cfgr_operation cfgr_operation_of_config(cfgr_config config);
cfgr_operation cfgr_operation_of_transaction(cfgr_transaction transaction);
cfgr_operation cfgr_operation_of_secret(cfgr_secret secret);
cfgr_operation cfgr_operation_of_http(cfgr_http_request http);
cfgr_operation cfgr_operation_of_extension(cfgr_extension extension);

#endif
