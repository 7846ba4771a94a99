/* What every SDK must be able to say and read: the table of the handlers. The reference is the same module in Rust. */
#include "conformance.h"

CFGR_MODULE(
    {"kubernetes-reads", kubernetes_reads, .description = "Gets and lists."},
    {"kubernetes-writes", kubernetes_writes, .description = "Creates, replaces and applies."},
    {"kubernetes-patches", kubernetes_patches, .description = "Patches of every type."},
    {"kubernetes-deletes", kubernetes_deletes, .description = "Deletes of every policy."},
    {"kubernetes-types", kubernetes_types, .description = "Every type that the SDK names."},
    {"config-entries", config_entries, .description = "Entries of every type."},
    {"config-app-conf", config_app_conf, .description = "Application configuration."},
    {"config-basic", config_basic, .description = "Plain keys."},
    {"config-two-layers", config_two_layers, .description = "Leaves under two levels."},
    {"config-transaction", config_transaction, .description = "All or nothing."},
    {"secrets", secrets, .description = "Secrets.",
     .capabilities = "{\"secretstore\":[{\"names\":[\"*\"],\"verbs\":[\"get\",\"create\",\"update\",\"delete\"]}]}"},
    {"http", http, .description = "HTTP endpoints."},
    {"options", options, .description = "What every request can have."},
    {"strategy", strategy, .description = "Orders of execution."},
    {"graph", graph, .description = "Requests that depend on one another."},
    {"object", object, .description = "Hands the object on, read and untouched."},
    {"numbers", numbers, .description = "Reads numbers."},
    {"unicode", unicode, .description = "Texts of all kinds."},
    {"deep", deep, .description = "A deep document."},
    {"large", large, .description = "A large document."},
    {"results", results, .description = "Reads results."},
    {"groups", groups, .description = "Reads groups of results."},
    {"reads", reads, .description = "Reads in one of several ways.", .accepts = CFGR_ACCEPTS_EITHER},
    {"nested-json", nested_json, .description = "Puts a document into another."},
    {"arguments", arguments, .description = "Reads and hands on arguments."},
    {"context", context, .description = "Reads the facts of the call."},
    {"state", state, .description = "Reads what it left behind.", .view = CFGR_VIEW_CHECK_LIST},
    {"statuses", statuses, .description = "Statuses and Events."},
    {"error", error, .description = "Errors of all kinds.", .parameters_schema = "{\"type\":\"object\"}"},
    {"panic", panic, .description = "Fails as no handler should."},
    {"outcome", outcome, .description = "Every way to end.", .view = CFGR_VIEW_OBJECT_DETAIL},
    {"desired", desired, .description = "All that an owner is to have."},
    {"plan", plan, .description = "Changes the plan of a pipeline."},
    {"plan-reads", plan_reads, .description = "Reads before it plans."},
    {"extension", extension, .description = "Requests to an extension."},
    {"log", log_lines, .description = "Logs at every level."},
    {"clock", clock_of_language, .description = "The language's clock."},
    {"chance", chance, .description = "Numbers made of the seed."},
    {"random", random_number, .description = "A number by the language's generator."},
    {"batch", batch, .description = "Something for each object.", .accepts = CFGR_ACCEPTS_BATCH},
    {"either", either, .description = "Counts objects.", .accepts = CFGR_ACCEPTS_EITHER});

const cfgr_error *parameter(const cfgr_input *input, const char *name, const char **text) {
    *text = cfgr_as_string(cfgr_get(cfgr_input_parameters(input), name));
    return *text == NULL ? cfgr_fatal(cfgr_concat("there is no parameter ", name)) : NULL;
}
