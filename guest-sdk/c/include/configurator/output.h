/*
 * What a handler returns.
 *
 * An output that asks for what a host does not have does nothing at all, and its run fails with `UnsupportedResourceOperation`:
 *
 * - in a chain: cfgr_output_again, cfgr_output_again_after, cfgr_output_wait, the field `next_phase`;
 * - in chains and machines, today: cfgr_output_stop; the strategy `graph`, with `depends_on` and `ready_when`, which make any other output invalid;
 *   `once`, in whose place a node of a machine is marked `once`; cfgr_output_desired.
 *
 * In a chain, the fields `data`, `progress`, `output` and `details` are checked and then left unread.
 */
#ifndef CONFIGURATOR_OUTPUT_H
#define CONFIGURATOR_OUTPUT_H

#include "compiler.h"
#include "error.h"
#include "input.h"
#include "json.h"
#include "request.h"

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

typedef enum cfgr_event_type {
    CFGR_EVENT_NORMAL,
    CFGR_EVENT_WARNING,
} cfgr_event_type;

/* A Kubernetes Event. */
typedef struct cfgr_event {
    cfgr_event_type type;
    const char *reason;
    const char *message;
    /* Needed in a batch, where it names the object. */
    cfgr_object_ref of;
} cfgr_event;

/* Merged into the object's status. */
typedef struct cfgr_status_update {
    const char *status;
    /* Needed in a batch, where it names the object. */
    cfgr_object_ref of;
} cfgr_status_update;

/* How far the handler is. */
typedef struct cfgr_progress {
    /* 0 to 100. */
    uint8_t percent;
    const char *message;
} cfgr_progress;

typedef struct cfgr_object_keys {
    const cfgr_object_key *items;
    size_t count;
} cfgr_object_keys;

/* Objects to wait for: `.objects = CFGR_OBJECT_KEYS(cfgr_key(CFGR_POD, "shop", "web"))`. */
#define CFGR_OBJECT_KEYS(...)                                     \
    ((cfgr_object_keys){(const cfgr_object_key[]){__VA_ARGS__},   \
                        sizeof((const cfgr_object_key[]){__VA_ARGS__}) / sizeof(cfgr_object_key)})

/* What to wait for: the first of these. */
typedef struct cfgr_wake {
    /* 0: no time, so only signals and objects count. To be entered at once, use cfgr_output_again. */
    uint64_t after_ms;
    /* Names of signals. */
    cfgr_names signals;
    cfgr_object_keys objects;
} cfgr_wake;

typedef enum cfgr_outcome_kind {
    CFGR_DONE,
    CFGR_AGAIN,
    CFGR_WAIT,
    CFGR_FAILED,
    CFGR_STOP,
} cfgr_outcome_kind;

/* How the call ends. */
typedef struct cfgr_outcome {
    cfgr_outcome_kind kind;
    /* Of CFGR_AGAIN; 0: at once. */
    uint64_t again_after_ms;
    /* Of CFGR_WAIT. */
    cfgr_wake wake;
    /* Of CFGR_FAILED. */
    const cfgr_error *error;
} cfgr_outcome;

/* One object that the owner is to have. */
typedef struct cfgr_desired_object {
    const char *name;
    const char *object;
    /* Names of others that must be ready first. */
    cfgr_names depends_on;
    cfgr_readiness ready_when;
    /* Kept when the owner goes, whatever the termination policy says. */
    bool retain;
} cfgr_desired_object;

/*
 * What a handler returns: begins with `{0}`, which asks for nothing and is done. Lists are filled by the functions below. The other fields are
 * set; a text that is set must live until the call ends, as literals and all texts of the SDK do.
 */
typedef struct cfgr_output {
    struct {
        cfgr_request *items;
        size_t count, capacity;
    } requests;
    struct {
        cfgr_document *items;
        size_t count, capacity;
    } arguments;
    struct {
        cfgr_status_update *items;
        size_t count, capacity;
    } statuses;
    struct {
        cfgr_event *items;
        size_t count, capacity;
    } events;
    struct {
        cfgr_desired_object *items;
        size_t count, capacity;
        bool is_said, allow_empty;
    } desired;
    cfgr_outcome outcome;
    cfgr_execute_strategy execute_strategy;
    cfgr_batch_error_strategy batch_error_strategy;
    /* Go to this phase whatever the transitions say; NULL: do as they say. */
    const char *next_phase;
    /* The handler's own notes, which come back when it is entered again. */
    cfgr_json data;
    /* For later steps of the same flow. */
    cfgr_json output;
    /* What a person sees under the view CFGR_VIEW_OBJECT_DETAIL. */
    cfgr_json details;
    /* Unsaid where the message is NULL. */
    cfgr_progress progress;
} cfgr_output;

/*
 * Adds a request: its name, and what it asks for. What may be said: the fields of cfgr_request.
 *
 *     cfgr_output_request(output, "pods", cfgr_kubernetes_list(CFGR_POD, "shop"), .on_error = CFGR_CATCH_ERROR);
 */
#define cfgr_output_request(to, named, what, ...) \
    cfgr_output_add_request((to), (cfgr_request){.name = (named), .operation = CFGR_OPERATION(what) __VA_OPT__(, ) __VA_ARGS__})

/* Hands a value to the next phase, which reads it with cfgr_input_argument. */
void cfgr_output_pass(cfgr_output *output, const char *key, cfgr_json value);

/*
 * Merges `document` into the object's status by server-side apply, at the end of the run. It counts once the requests of this phase have
 * gone through. In a batch, say `.of = {namespace, name}`.
 */
#define cfgr_output_status(to, document, ...) \
    cfgr_output_add_status((to), (cfgr_status_update){.status = cfgr_json_text(document) __VA_OPT__(, ) __VA_ARGS__})

/* A Kubernetes Event about the object, published once the requests of this phase have gone through. In a batch, say `.of`. */
#define cfgr_output_event(to, of_type, why, text, ...) \
    cfgr_output_add_event(                             \
        (to), (cfgr_event){.type = (of_type), .reason = (why), .message = (text)__VA_OPT__(, ) __VA_ARGS__})

/* Enter this handler again with the requests' results: at once. Refused in a chain, where the next phase gets the results. */
void cfgr_output_again(cfgr_output *output);

/* The same after this long; 0: at once. Refused in a chain, where cfgr_retry with `retry_after_ms` begins the run again. */
void cfgr_output_again_after(cfgr_output *output, uint64_t milliseconds);

/*
 * Leave memory; enter this handler again at the first of these. Refused in a chain.
 *
 *     cfgr_output_wait(output, .after_ms = 60000, .signals = CFGR_NAMES("go"));
 */
#define cfgr_output_wait(to, ...) cfgr_output_wait_for((to), (cfgr_wake){__VA_ARGS__})

/*
 * Fail, but keep statuses, events, data and progress. Requests are dropped: the contract allows none here. In a chain this is an error
 * of the handler whose statuses and events are published all the same.
 */
void cfgr_output_failed(cfgr_output *output, const cfgr_error *error);

/* In a pipeline: the handlers after this one are not called. */
void cfgr_output_stop(cfgr_output *output);

/*
 * Says that the objects which are added by cfgr_output_desired_object are all that the owner is to have; what is missing is pruned. Without
 * `allow_empty`, none at all is an error.
 */
void cfgr_output_desired(cfgr_output *output, bool allow_empty);

/* Adds an object that the owner is to have. What may be said: `.depends_on`, `.ready_when`, `.retain`. */
#define cfgr_output_desired_object(to, named, document, ...) \
    cfgr_output_add_desired(                                 \
        (to), (cfgr_desired_object){.name = (named), .object = cfgr_json_text(document) __VA_OPT__(, ) __VA_ARGS__})

/* What the macros call. */
void cfgr_output_add_request(cfgr_output *output, cfgr_request request);
void cfgr_output_add_status(cfgr_output *output, cfgr_status_update update);
void cfgr_output_add_event(cfgr_output *output, cfgr_event event);
void cfgr_output_wait_for(cfgr_output *output, cfgr_wake wake);
void cfgr_output_add_desired(cfgr_output *output, cfgr_desired_object object);

#endif
