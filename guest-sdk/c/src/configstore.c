#include "configurator/configstore.h"

#include "configurator/text.h"
#include "internal.h"

cfgr_entry cfgr_copy_entry(cfgr_entry entry) {
    entry.namespace = cfgr_copy(entry.namespace);
    entry.workload_kind = cfgr_copy(entry.workload_kind);
    entry.name = cfgr_copy(entry.name);
    entry.uid = cfgr_copy(entry.uid);
    return entry;
}

static cfgr_config of_entry(cfgr_config_verb verb, cfgr_entry entry, const char *value) {
    return (cfgr_config){.kind = CFGR_CONFIG_ENTRY, .verb = verb, .entry = cfgr_copy_entry(entry), .value = cfgr_copy(value)};
}

cfgr_config cfgr_entry_get(cfgr_entry entry) {
    return of_entry(CFGR_CONFIG_GET, entry, NULL);
}

cfgr_config cfgr_entry_create(cfgr_entry entry, const char *value) {
    return of_entry(CFGR_CONFIG_CREATE, entry, value);
}

cfgr_config cfgr_entry_update(cfgr_entry entry, const char *value) {
    return of_entry(CFGR_CONFIG_UPDATE, entry, value);
}

cfgr_config cfgr_entry_delete(cfgr_entry entry) {
    return of_entry(CFGR_CONFIG_DELETE, entry, NULL);
}

cfgr_app_conf cfgr_copy_app_conf(cfgr_app_conf key) {
    key.pod = cfgr_copy(key.pod);
    key.key = cfgr_copy(key.key);
    key.namespace = cfgr_copy(key.namespace);
    return key;
}

static cfgr_config of_app_conf(cfgr_config_verb verb, cfgr_app_conf key, const char *value) {
    return (cfgr_config){
        .kind = CFGR_CONFIG_APP_CONF, .verb = verb, .app_conf = cfgr_copy_app_conf(key), .value = cfgr_copy(value)};
}

cfgr_config cfgr_app_conf_create(cfgr_app_conf key, const char *value) {
    return of_app_conf(CFGR_CONFIG_CREATE, key, value);
}

cfgr_config cfgr_app_conf_update(cfgr_app_conf key, const char *value) {
    return of_app_conf(CFGR_CONFIG_UPDATE, key, value);
}

cfgr_config cfgr_app_conf_delete(cfgr_app_conf key) {
    return of_app_conf(CFGR_CONFIG_DELETE, key, NULL);
}

static cfgr_config of_basic(cfgr_config_verb verb, const char *key, const char *value) {
    return (cfgr_config){.kind = CFGR_CONFIG_BASIC, .verb = verb, .basic = cfgr_copy(key), .value = cfgr_copy(value)};
}

cfgr_config cfgr_basic_get(const char *key) {
    return of_basic(CFGR_CONFIG_GET, key, NULL);
}

cfgr_config cfgr_basic_put(const char *key, const char *value) {
    return of_basic(CFGR_CONFIG_UPDATE, key, value);
}

cfgr_config cfgr_basic_delete(const char *key) {
    return of_basic(CFGR_CONFIG_DELETE, key, NULL);
}

static cfgr_config of_two_layers(cfgr_config_verb verb, const char *second, const char *third, const char *value) {
    return (cfgr_config){
        .kind = CFGR_CONFIG_TWO_LAYERS,
        .verb = verb,
        .two_layers = {cfgr_copy(second), cfgr_copy(third)},
        .value = cfgr_copy(value),
    };
}

cfgr_config cfgr_two_layers_get(const char *second, const char *third) {
    return of_two_layers(CFGR_CONFIG_GET, second, third, NULL);
}

cfgr_config cfgr_two_layers_create(const char *second, const char *third, const char *value) {
    return of_two_layers(CFGR_CONFIG_CREATE, second, third, value);
}

cfgr_config cfgr_two_layers_update(const char *second, const char *third, const char *value) {
    return of_two_layers(CFGR_CONFIG_UPDATE, second, third, value);
}

cfgr_config cfgr_two_layers_delete(const char *second, const char *third) {
    return of_two_layers(CFGR_CONFIG_DELETE, second, third, NULL);
}

void cfgr_transaction_add(cfgr_transaction *transaction, cfgr_config operation) {
    transaction->operations =
        cfgr_room(transaction->operations, transaction->count, &transaction->capacity, sizeof *transaction->operations);
    transaction->operations[transaction->count++] = operation;
}

cfgr_transaction cfgr_transaction_of(const cfgr_config *operations, size_t count) {
    cfgr_transaction transaction = {0};
    for (size_t i = 0; i < count; i++) {
        cfgr_transaction_add(&transaction, operations[i]);
    }
    return transaction;
}
