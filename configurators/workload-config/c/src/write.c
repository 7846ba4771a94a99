/* The write phase: writes the entry of each Deployment of the batch whose summary is not what is stored. */
#include <stdlib.h>
#include <string.h>

#include "workload_config.h"

/* A result under its name, and what was read of it. */
typedef struct named {
    const char *name;
    const cfgr_result *result;
    cfgr_json annotations;
} named;

/* In the order of their names. */
typedef struct index_of_results {
    named *items;
    size_t count;
} index_of_results;

static int by_name(const void *one, const void *other) {
    return strcmp(((const named *)one)->name, ((const named *)other)->name);
}

static index_of_results sorted(cfgr_results results) {
    named *items = cfgr_alloc_items(results.count, sizeof *items);
    for (size_t i = 0; i < results.count; i++) {
        items[i] = (named){.name = results.items[i].request_name, .result = &results.items[i]};
    }
    if (results.count > 1) {
        qsort(items, results.count, sizeof *items, by_name);
    }
    return (index_of_results){items, results.count};
}

static const named *find(index_of_results index, const char *name) {
    named wanted = {.name = name};
    return index.count == 0 ? NULL : bsearch(&wanted, index.items, index.count, sizeof wanted, by_name);
}

/* Whether this is stored. Where it cannot be read it is written anew. */
static bool is_stored(const named *entry, const char *value) {
    cfgr_json object;
    return entry != NULL && cfgr_result_object(entry->result, &object) == NULL &&
           cfgr_equal(cfgr_as_string(cfgr_get(object, "value")), value);
}

/* An error when a Namespace could not be read, which a retry may cure: without it a Deployment would lose a layer. */
const cfgr_error *write_entries(const cfgr_input *input, cfgr_output *output) {
    index_of_results namespaces = sorted(cfgr_input_find_group(input, NAMESPACES));
    index_of_results entries = sorted(cfgr_input_find_group(input, ENTRIES));
    for (size_t i = 0; i < namespaces.count; i++) {
        cfgr_json namespace;
        CFGR_TRY(cfgr_result_found(namespaces.items[i].result, &namespace));
        namespaces.items[i].annotations = cfgr_at(namespace, "/metadata/annotations");
    }
    for (size_t i = 0; i < input->object_count; i++) {
        cfgr_json deployment = cfgr_watched_object(&input->objects[i]);
        identity of;
        CFGR_TRY(identity_of(deployment, &of));
        const named *namespace = find(namespaces, cfgr_concat(NAMESPACE_REQUEST, of.namespace));
        cfgr_json annotations = namespace == NULL ? cfgr_null() : namespace->annotations;
        const char *summary;
        CFGR_TRY(summary_of(deployment, annotations, &summary));
        if (!is_stored(find(entries, request_name("entry", of)), summary)) {
            cfgr_output_request(output, request_name("config", of), cfgr_entry_update(entry_of(of), summary),
                                .of = {of.namespace, of.name});
        }
    }
    return NULL;
}
