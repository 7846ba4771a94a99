#include "configurator/secretstore.h"

#include "configurator/panic.h"
#include "configurator/text.h"

cfgr_secret cfgr_secret_get(const char *name) {
    return (cfgr_secret){.verb = CFGR_SECRET_GET, .name = cfgr_copy(name)};
}

cfgr_secret cfgr_secret_create(const char *name) {
    return (cfgr_secret){.verb = CFGR_SECRET_CREATE, .name = cfgr_copy(name)};
}

cfgr_secret cfgr_secret_create_with(const char *name, cfgr_json value) {
    /* Without a value the host would make one up. */
    if (cfgr_is_absent(value)) {
        cfgr_panic(cfgr_concat("the secret ", name, " is to have a value that is absent"));
    }
    return (cfgr_secret){.verb = CFGR_SECRET_CREATE, .name = cfgr_copy(name), .value = cfgr_json_text(value)};
}

cfgr_secret cfgr_secret_delete(const char *name) {
    return (cfgr_secret){.verb = CFGR_SECRET_DELETE, .name = cfgr_copy(name)};
}
