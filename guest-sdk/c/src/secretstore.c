#include "configurator/secretstore.h"

#include "configurator/panic.h"
#include "configurator/text.h"
#include "internal.h"

const char *cfgr_secret_value(const char *name, cfgr_json value) {
    /* Without a value the host would generate one. */
    if (cfgr_is_absent(value)) {
        cfgr_panic(cfgr_concat("the secret ", name, " is to have a value that is absent"));
    }
    return cfgr_json_text(value);
}

cfgr_secret cfgr_secret_get(const char *name) {
    return (cfgr_secret){.verb = CFGR_SECRET_GET, .name = cfgr_copy(name)};
}

cfgr_secret cfgr_secret_create(const char *name) {
    return (cfgr_secret){.verb = CFGR_SECRET_CREATE, .name = cfgr_copy(name)};
}

cfgr_secret cfgr_secret_create_with(const char *name, cfgr_json value) {
    return (cfgr_secret){.verb = CFGR_SECRET_CREATE, .name = cfgr_copy(name), .value = cfgr_secret_value(name, value)};
}

cfgr_secret cfgr_secret_update(const char *name, uint64_t version) {
    return (cfgr_secret){.verb = CFGR_SECRET_UPDATE, .name = cfgr_copy(name), .version = version};
}

cfgr_secret cfgr_secret_update_with(const char *name, uint64_t version, cfgr_json value) {
    cfgr_secret update = cfgr_secret_update(name, version);
    update.value = cfgr_secret_value(name, value);
    return update;
}

cfgr_secret cfgr_secret_delete(const char *name) {
    return (cfgr_secret){.verb = CFGR_SECRET_DELETE, .name = cfgr_copy(name)};
}
