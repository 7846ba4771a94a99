/* The root phase: asks for each Namespace of the batch once, and for the entry of each Deployment. */
#include "workload_config.h"

/* Failures join their groups. An entry that is absent is the ordinary case of a new Deployment. */
const cfgr_error *root(const cfgr_input *input, cfgr_output *output) {
    identity *identities = cfgr_alloc_items(input->object_count, sizeof *identities);
    cfgr_members namespaces = {0};
    for (size_t i = 0; i < input->object_count; i++) {
        CFGR_TRY(identity_of(cfgr_watched_object(&input->objects[i]), &identities[i]));
        cfgr_members_set(&namespaces, identities[i].namespace, cfgr_null());
    }
    cfgr_members_sort(&namespaces);
    for (size_t i = 0; i < namespaces.count; i++) {
        const char *name = namespaces.members[i].key;
        cfgr_kubernetes get = cfgr_kubernetes_get(CFGR_NAMESPACE, NULL, name, .cached = true);
        cfgr_output_request(output, cfgr_concat(NAMESPACE_REQUEST, name), get, .group_by = NAMESPACES);
    }
    for (size_t i = 0; i < input->object_count; i++) {
        identity of = identities[i];
        cfgr_output_request(output, request_name("entry", of), cfgr_entry_get(entry_of(of)), .group_by = ENTRIES,
                            .of = {of.namespace, of.name});
    }
    return NULL;
}
