#include "configurator/secretstore.h"

#include "configurator/text.h"

cfgr_secret cfgr_secret_get(const char *name) {
    return (cfgr_secret){.verb = CFGR_SECRET_GET, .name = cfgr_copy(name)};
}

cfgr_secret cfgr_secret_create(const char *name) {
    return (cfgr_secret){.verb = CFGR_SECRET_CREATE, .name = cfgr_copy(name)};
}

cfgr_secret cfgr_secret_create_with(const char *name, cfgr_json value) {
    return (cfgr_secret){.verb = CFGR_SECRET_CREATE, .name = cfgr_copy(name), .value = cfgr_json_text(value)};
}

cfgr_secret cfgr_secret_delete(const char *name) {
    return (cfgr_secret){.verb = CFGR_SECRET_DELETE, .name = cfgr_copy(name)};
}
