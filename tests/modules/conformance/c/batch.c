/* Batches. */
#include "conformance.h"

/* Of each object: a request, a status and an Event. */
const cfgr_error *batch(const cfgr_input *input, cfgr_output *output) {
    static const char *const events[] = {"added", "modified", "deleted", "resync"};
    for (size_t i = 0; i < input->object_count; i++) {
        const cfgr_watched *watched = &input->objects[i];
        const char *event = events[watched->event];
        cfgr_json metadata = cfgr_get(cfgr_watched_object(watched), "metadata");
        const char *namespace = cfgr_string_or(cfgr_get(metadata, "namespace"), "");
        const char *name = cfgr_string_or(cfgr_get(metadata, "name"), "");
        const char *uid = cfgr_string_or(cfgr_get(metadata, "uid"), "");
        cfgr_entry entry = cfgr_pod_entry(namespace, name, .uid = uid);
        cfgr_output_request(output, cfgr_concat(namespace, "/", name), cfgr_entry_update(entry, "1"), .of = {namespace, name});
        cfgr_output_status(output, CFGR_OBJECT({"seen", cfgr_string(event)}), .of = {namespace, name});
        cfgr_output_event(output, CFGR_EVENT_NORMAL, "Seen", cfgr_concat(name, " was ", event), .of = {namespace, name});
    }
    return NULL;
}

const cfgr_error *either(const cfgr_input *input, cfgr_output *output) {
    cfgr_output_pass(output, "objects", cfgr_unsigned(input->object_count));
    return NULL;
}
