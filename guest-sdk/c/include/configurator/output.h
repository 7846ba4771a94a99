/*
 * What a handler returns.
 *
 * An output that asks for what a host does not have does nothing at all, and its run fails with `UnsupportedResourceOperation`:
 *
 * - in a chain: cfgr_output_again, cfgr_output_again_after, cfgr_output_wait, the field `next_phase`;
 * - in a machine: cfgr_output_desired, cfgr_output_desired_entry and cfgr_output_pre_terminate of a node with `once`, and of all but one of
 *   several nodes side by side;
 * - in chains and machines, today: cfgr_output_stop; `once`, in whose place a node of a machine is marked `once`; cfgr_output_read and
 *   cfgr_output_remove_from_plan, which need a pipeline.
 *
 * `depends_on` and `ready_when` of a request need the strategy `graph`, and make any other output invalid.
 *
 * In a chain, the fields `data`, `progress`, `output` and `details` are checked and then left unread.
 */
#ifndef CONFIGURATOR_OUTPUT_H
#define CONFIGURATOR_OUTPUT_H

#include "compiler.h"
#include "desired.h"
#include "error.h"
#include "input.h"
#include "json.h"
#include "request.h"

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

/*
 * What a handler returns: begins with `{0}`, which asks for nothing and is done. Lists are filled by the functions below. The other fields are
 * set; a text that is set must live until the call ends, as literals and all texts of the SDK do.
 */
typedef struct cfgr_output {
    cfgr_requests requests;
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
    cfgr_desired_set desired;
    struct {
        const char **items;
        size_t count, capacity;
    } remove_from_plan;
    cfgr_requests reads;
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
 * Fail, but keep statuses, events, data and progress. Requests and reads are dropped: the contract allows none here. In a chain this is an error
 * of the handler whose statuses and events are published all the same.
 */
void cfgr_output_failed(cfgr_output *output, const cfgr_error *error);

/* In a pipeline: the handlers after this one are not called. */
void cfgr_output_stop(cfgr_output *output);

/*
 * Says that the entries of the output are all that the owner is to have, even if there are none; the host deletes what is missing. In a
 * pipeline, the entries join the plan. Options: the fields of cfgr_desired_options. A later call replaces them.
 *
 *     cfgr_output_desired(output, .provision = CFGR_GROUPS(CFGR_NAMES("a"), CFGR_NAMES("b", "c")));
 */
#define cfgr_output_desired(to, ...) cfgr_output_desired_with((to), (cfgr_desired_options){__VA_ARGS__})

/*
 * Adds an entry to the set: its name, and its content, which is a Kubernetes object, or made by a macro of content.h. Options: the fields of
 * cfgr_desired_entry.
 *
 *     cfgr_output_desired_entry(output, "database", stateful_set, .depends_on = CFGR_NAMES("password"));
 */
#define cfgr_output_desired_entry(to, named, what, ...) \
    cfgr_output_add_desired_entry((to), (cfgr_desired_entry){.name = (named), .content = CFGR_CONTENT(what) __VA_OPT__(, ) __VA_ARGS__})

/* Adds a request to the set that is executed when the owner is being deleted, before any member is. Options as for cfgr_output_request. */
#define cfgr_output_pre_terminate(to, named, what, ...) \
    cfgr_output_add_pre_terminate((to), (cfgr_request){.name = (named), .operation = CFGR_OPERATION(what) __VA_OPT__(, ) __VA_ARGS__})

/* In a pipeline: the plan loses the request or entry of this name. */
void cfgr_output_remove_from_plan(cfgr_output *output, const char *name);

/*
 * In a pipeline: adds a request that only reads, and enters this handler again with its result, by cfgr_input_answer. Options as for
 * cfgr_output_request.
 */
#define cfgr_output_read(to, named, what, ...) \
    cfgr_output_add_read((to), (cfgr_request){.name = (named), .operation = CFGR_OPERATION(what) __VA_OPT__(, ) __VA_ARGS__})

/* What the macros call. Requests and entries of a plan are added with these, too. */
void cfgr_output_add_request(cfgr_output *output, cfgr_request request);
void cfgr_output_add_status(cfgr_output *output, cfgr_status_update update);
void cfgr_output_add_event(cfgr_output *output, cfgr_event event);
void cfgr_output_wait_for(cfgr_output *output, cfgr_wake wake);
void cfgr_output_desired_with(cfgr_output *output, cfgr_desired_options options);
void cfgr_output_add_desired_entry(cfgr_output *output, cfgr_desired_entry entry);
void cfgr_output_add_pre_terminate(cfgr_output *output, cfgr_request request);
void cfgr_output_add_read(cfgr_output *output, cfgr_request request);

#endif
