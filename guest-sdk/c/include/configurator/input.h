/* What a handler gets. */
#ifndef CONFIGURATOR_INPUT_H
#define CONFIGURATOR_INPUT_H

#include "compiler.h"
#include "error.h"
#include "json.h"
#include "kubernetes.h"
#include "plan.h"
#include "result.h"

/* Why an object is in the run. Several changes since the last run are one `modified`. */
typedef enum cfgr_watch_event {
    CFGR_ADDED,
    CFGR_MODIFIED,
    CFGR_DELETED,
    CFGR_RESYNC,
} cfgr_watch_event;

typedef struct cfgr_watched {
    /* The object's document, as it was watched. */
    const char *object;
    cfgr_watch_event event;
} cfgr_watched;

/* The object, read. */
cfgr_json cfgr_watched_object(const cfgr_watched *watched);

/* What is under one key of the results: the result of one request, or those of a group. */
typedef struct cfgr_result_entry {
    const char *key;
    bool is_group;
    /* Exactly one where it is no group. */
    cfgr_results results;
} cfgr_result_entry;

typedef struct cfgr_result_entries {
    const cfgr_result_entry *items;
    size_t count;
} cfgr_result_entries;

/* A document under a name. */
typedef struct cfgr_document {
    const char *name;
    const char *text;
} cfgr_document;

typedef struct cfgr_documents {
    const cfgr_document *items;
    size_t count;
} cfgr_documents;

/* Why the handler is called now. */
typedef enum cfgr_cause_kind {
    /* The first call in this phase. */
    CFGR_CAUSE_ENTERED,
    /* A request of the previous call failed, or the call itself did. */
    CFGR_CAUSE_RETRY,
    /* The previous call ended with cfgr_output_again. */
    CFGR_CAUSE_AGAIN,
    /* The time named in cfgr_output_wait has come. */
    CFGR_CAUSE_TIMER,
    CFGR_CAUSE_SIGNAL,
    /* An object named in cfgr_output_wait has changed. */
    CFGR_CAUSE_CHANGED,
    /* The host restarted or another took over: `last` is what was stored, its results are gone. */
    CFGR_CAUSE_RECOVERED,
} cfgr_cause_kind;

typedef struct cfgr_cause {
    cfgr_cause_kind kind;
    /* Of CFGR_CAUSE_SIGNAL: its name, and its document or NULL. */
    const char *signal;
    const char *signal_data;
    /* Of CFGR_CAUSE_CHANGED. */
    cfgr_object_key changed;
} cfgr_cause;

/* Facts about this call. */
typedef struct cfgr_context {
    /* The name of the Configurator. */
    const char *configurator;
    const char *phase;
    /* The handler's node in the phase's tree: `install/prepare/create-pods`. The phase's name where there is no tree. */
    const char *node;
    /* Counts from 1; `again` and the end of a `wait` add one, a retry does not. */
    uint32_t entry;
    /* Counts from 1 within an entry; a retry adds one. */
    uint32_t attempt;
    cfgr_cause cause;
    /* When this entry began, as `2026-01-31T08:00:00.000Z`: the same on a retry. */
    const char *now;
    /* Chance for the handler: the same on a retry. */
    uint64_t seed;
    /* The Configurator's `spec.parameters` with those of the node laid over, as a text. */
    const char *parameters;
    /* Stable for one run of one object: usable in names that must not change on a retry. */
    const char *run_id;
} cfgr_context;

/* What the previous entry of this same handler left behind. */
typedef struct cfgr_handler_state {
    /* NULL where it has none. */
    const char *start_time;
    const char *end_time;
    bool done;
    bool failed;
    bool fatal;
    /* NULL where it has not failed. */
    const cfgr_error *error;
    /* The handler's own notes as a text, or NULL. */
    const char *data;
    /* What became of its requests. */
    cfgr_result_entries results;
} cfgr_handler_state;

/* What a handler gets. It does not change while the call runs. */
typedef struct cfgr_input {
    bool is_batch;
    /* One, or those of the batch, which is never empty. */
    const cfgr_watched *objects;
    size_t object_count;
    /* Of the previous phase, in the order of the requests. Empty in the root phase. */
    cfgr_result_entries results;
    /* What the previous phase passed on. Empty in the root phase. */
    cfgr_documents arguments;
    /* NULL unless the handler is entered again. */
    const cfgr_handler_state *last;
    /* What earlier steps of the same flow have left, by path. */
    cfgr_documents outputs;
    /* In a pipeline: what the handlers before this one have planned, and what this one has. NULL elsewhere. */
    const cfgr_plan *plan;
    cfgr_context context;
} cfgr_input;

/* The object, read; of a batch, the first. */
cfgr_json cfgr_input_object(const cfgr_input *input);

/* Why the object is in the run; of a batch, the first. */
cfgr_watch_event cfgr_input_event(const cfgr_input *input);

/*
 * The result of the request of this name. Fatal when there is none, or when a group has this key; the message lists the results that there
 * are. A request that failed with CFGR_DROP_ERROR has no result: use cfgr_input_find_result for those.
 */
CFGR_MUST_USE const cfgr_error *cfgr_input_result(const cfgr_input *input, const char *request_name, const cfgr_result **result);

/* The result of the request of this name; NULL where there is none, and where a group has this key. */
const cfgr_result *cfgr_input_find_result(const cfgr_input *input, const char *request_name);

/* The results of all requests with this `group_by`, in the order of the requests. Fatal when there are none, or a request has this name. */
CFGR_MUST_USE const cfgr_error *cfgr_input_group(const cfgr_input *input, const char *group_by, cfgr_results *group);

/* The results of all requests with this `group_by`; none where no request had it. */
cfgr_results cfgr_input_find_group(const cfgr_input *input, const char *group_by);

/* What the previous phase passed on under this key. Fatal when it passed on no such key. */
CFGR_MUST_USE const cfgr_error *cfgr_input_argument(const cfgr_input *input, const char *key, cfgr_json *value);

/* The text that the previous phase passed on under this key, or NULL. */
const char *cfgr_input_find_argument(const cfgr_input *input, const char *key);

/* The Configurator's `spec.parameters`, with those of the node laid over; an empty object where it has none. */
cfgr_json cfgr_input_parameters(const cfgr_input *input);

/*
 * In a machine: the result of the request of this name that the entry before asked for. NULL on the first entry, where the request was
 * not asked for, and where the host does not remember: then ask again.
 */
const cfgr_result *cfgr_input_answer(const cfgr_input *input, const char *request_name);

/* In a machine: the results of all requests with this `group_by` that the entry before asked for; none where there is no answer. */
cfgr_results cfgr_input_answers(const cfgr_input *input, const char *group_by);

/* In a machine: what this handler has noted in the field `data` of its output; absent where it has noted nothing. */
cfgr_json cfgr_input_notes(const cfgr_input *input);

/*
 * In a machine: what the step at this path has left in the field `output` of its output. The path is that within the flow; outside a
 * flow it begins with the phase. Fatal when the step has left nothing; the message lists the steps that have.
 */
CFGR_MUST_USE const cfgr_error *cfgr_input_output_of(const cfgr_input *input, const char *path, cfgr_json *output);

#endif
