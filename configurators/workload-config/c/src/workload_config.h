/* The handlers, and what they share. */
#ifndef WORKLOAD_CONFIG_H
#define WORKLOAD_CONFIG_H

#include <configurator_sdk.h>

/* The keys under which results arrive together: the Namespaces, each once, and the stored entries, one for each Deployment. */
#define NAMESPACES "namespaces"
#define ENTRIES "entries"

/* The name of the request for a Namespace. */
#define NAMESPACE_REQUEST "namespace/"

cfgr_handle root, write_entries, cleanup;

/* What every object has, also one of which only the identity is known. */
typedef struct identity {
    const char *namespace;
    const char *name;
    const char *uid;
} identity;

/* Fatal when the object is not one of the API. */
CFGR_MUST_USE const cfgr_error *identity_of(cfgr_json object, identity *result);

/* Its entry in the config store. */
cfgr_entry entry_of(identity of);

/* The name of a request about it: no two of a batch share one, because no two objects share namespace and name. */
const char *request_name(const char *what, identity of);

/* The value of a Deployment's entry. The same Deployment and annotations of its Namespace give the same text. Fatal when it is none. */
CFGR_MUST_USE const cfgr_error *summary_of(cfgr_json deployment, cfgr_json namespace_annotations, const char **result);

#endif
