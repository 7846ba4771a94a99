/* Who an object is. */
#include "workload_config.h"

const cfgr_error *identity_of(cfgr_json object, identity *result) {
    CFGR_TRY(cfgr_need_string(object, "/metadata/namespace", &result->namespace));
    CFGR_TRY(cfgr_need_string(object, "/metadata/name", &result->name));
    return cfgr_need_string(object, "/metadata/uid", &result->uid);
}

cfgr_entry entry_of(identity of) {
    return cfgr_workload_entry(of.namespace, "Deployment", of.name, .uid = of.uid);
}

const char *request_name(const char *what, identity of) {
    return cfgr_concat(what, "/", of.namespace, "/", of.name);
}
