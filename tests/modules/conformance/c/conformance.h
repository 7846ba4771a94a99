/* The handlers, by file. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <configurator_sdk.h>

cfgr_handle kubernetes_reads, kubernetes_writes, kubernetes_patches, kubernetes_deletes, kubernetes_types;
cfgr_handle config_entries, config_app_conf, config_basic, config_two_layers, config_transaction, secrets;
cfgr_handle http, options, strategy, graph;
cfgr_handle object, numbers, unicode, deep, large, nested_json;
cfgr_handle results, groups, reads, arguments, context, state;
cfgr_handle statuses, error, panic, outcome, log_lines, clock_of_language, chance, random_number;
cfgr_handle desired, plan, plan_reads, extension;
cfgr_handle batch, either;

/* A text of the parameters. Fatal where it is missing. */
CFGR_MUST_USE const cfgr_error *parameter(const cfgr_input *input, const char *name, const char **text);

#endif
