/* The deletion phase: deletes the entries. That of a newer Deployment of the same name has another uid, and stays. */
#include "workload_config.h"

const cfgr_error *cleanup(const cfgr_input *input, cfgr_output *output) {
    for (size_t i = 0; i < input->object_count; i++) {
        identity of;
        CFGR_TRY(identity_of(cfgr_watched_object(&input->objects[i]), &of));
        cfgr_output_request(output, request_name("config", of), cfgr_entry_delete(entry_of(of)), .of = {of.namespace, of.name});
    }
    return NULL;
}
