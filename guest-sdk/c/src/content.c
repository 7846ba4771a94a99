#include "configurator/content.h"

#include "configurator/text.h"
#include "internal.h"

static cfgr_config_content config(cfgr_config_kind kind, const char *value, cfgr_content_options options) {
    return (cfgr_config_content){.kind = kind, .value = cfgr_copy(value), .partition = cfgr_copy(options.partition)};
}

cfgr_config_content cfgr_entry_content_of(cfgr_entry entry, const char *value, cfgr_content_options options) {
    cfgr_config_content content = config(CFGR_CONFIG_ENTRY, value, options);
    content.entry = cfgr_copy_entry(entry);
    return content;
}

cfgr_config_content cfgr_app_conf_content_of(cfgr_app_conf key, const char *value, cfgr_content_options options) {
    cfgr_config_content content = config(CFGR_CONFIG_APP_CONF, value, options);
    content.app_conf = cfgr_copy_app_conf(key);
    return content;
}

cfgr_config_content cfgr_basic_content_of(const char *key, const char *value, cfgr_content_options options) {
    cfgr_config_content content = config(CFGR_CONFIG_BASIC, value, options);
    content.basic = cfgr_copy(key);
    return content;
}

cfgr_config_content cfgr_two_layers_content_of(
    const char *second, const char *third, const char *value, cfgr_content_options options) {
    cfgr_config_content content = config(CFGR_CONFIG_TWO_LAYERS, value, options);
    content.two_layers = (cfgr_two_layers){cfgr_copy(second), cfgr_copy(third)};
    return content;
}

cfgr_secret_content cfgr_secret_content_generated(const char *name, cfgr_content_options options) {
    return (cfgr_secret_content){.name = cfgr_copy(name), .partition = cfgr_copy(options.partition)};
}

cfgr_secret_content cfgr_secret_content_given(const char *name, cfgr_json value, cfgr_content_options options) {
    cfgr_secret_content content = cfgr_secret_content_generated(name, options);
    content.value = cfgr_secret_value(name, value);
    return content;
}

cfgr_content cfgr_content_of_kubernetes(cfgr_json object) {
    return (cfgr_content){.kind = CFGR_CONTENT_KUBERNETES, .kubernetes = cfgr_json_text(object)};
}

cfgr_content cfgr_content_of_config(cfgr_config_content config) {
    return (cfgr_content){.kind = CFGR_CONTENT_CONFIG, .config = config};
}

cfgr_content cfgr_content_of_secret(cfgr_secret_content secret) {
    return (cfgr_content){.kind = CFGR_CONTENT_SECRET, .secret = secret};
}

cfgr_content cfgr_content_of_content(cfgr_content content) {
    return content;
}
