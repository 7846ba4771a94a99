/* Sets. */
#include "component.h"

/* --- From the host --- */

static cfgr_config_content config_in(const configurator_handler_desired_config_content_t *from) {
    const configurator_handler_desired_config_key_t *key = &from->key;
    cfgr_config_content to = {.value = cfgr_text_in(from->value), .partition = TEXT_IN(from->partition)};
    switch (key->tag) {
    case CONFIGURATOR_HANDLER_DESIRED_CONFIG_KEY_RESOURCE:
        to.kind = CFGR_CONFIG_ENTRY;
        to.entry = (cfgr_entry){
            .type = (cfgr_entry_type)key->val.resource.config_type,
            .namespace = TEXT_IN(key->val.resource.namespace_),
            .workload_kind = TEXT_IN(key->val.resource.workload_kind),
            .name = cfgr_text_in(key->val.resource.resource_name),
            .uid = TEXT_IN(key->val.resource.resource_uid),
        };
        break;
    case CONFIGURATOR_HANDLER_DESIRED_CONFIG_KEY_APP_CONF:
        to.kind = CFGR_CONFIG_APP_CONF;
        to.app_conf = (cfgr_app_conf){
            .pod = cfgr_text_in(key->val.app_conf.pod_name),
            .key = cfgr_text_in(key->val.app_conf.key),
            .namespace = TEXT_IN(key->val.app_conf.namespace_),
        };
        break;
    case CONFIGURATOR_HANDLER_DESIRED_CONFIG_KEY_BASIC:
        to.kind = CFGR_CONFIG_BASIC;
        to.basic = cfgr_text_in(key->val.basic);
        break;
    default:
        to.kind = CFGR_CONFIG_TWO_LAYERS;
        to.two_layers =
            (cfgr_two_layers){cfgr_text_in(key->val.two_layers.second_path), cfgr_text_in(key->val.two_layers.third_path)};
        break;
    }
    return to;
}

static cfgr_secret_content secret_in(const configurator_handler_desired_secret_content_t *from) {
    return (cfgr_secret_content){
        .name = cfgr_text_in(from->secret_name),
        .value = DOCUMENT_IN(from->value),
        .partition = TEXT_IN(from->partition),
    };
}

static cfgr_content content_in(const configurator_handler_desired_content_t *from) {
    switch (from->tag) {
    case CONFIGURATOR_HANDLER_DESIRED_CONTENT_CONFIG:
        return CFGR_CONTENT(config_in(&from->val.config));
    case CONFIGURATOR_HANDLER_DESIRED_CONTENT_SECRET:
        return CFGR_CONTENT(secret_in(&from->val.secret));
    default:
        return (cfgr_content){.kind = CFGR_CONTENT_KUBERNETES, .kubernetes = cfgr_document_in(from->val.kubernetes)};
    }
}

static cfgr_desired_entry entry_in(const configurator_handler_desired_desired_entry_t *from) {
    return (cfgr_desired_entry){
        .name = cfgr_text_in(from->name),
        .content = content_in(&from->content),
        .depends_on = cfgr_names_in(from->depends_on),
        .ready_when = READINESS_IN(from->ready_when),
        .failed_when = TEXT_IN(from->failed_when),
        .timeout_ms = NUMBER_IN(from->timeout),
        .on_existing = ENUM_IN(from->on_existing),
        .on_conflict = ENUM_IN(from->on_conflict),
        .on_immutable = ENUM_IN(from->on_immutable),
        .ignored_paths = cfgr_names_in(from->ignored_paths),
        .on_delete = ENUM_IN(from->on_delete),
    };
}

static cfgr_groups groups_in(configurator_list_list_string_t list) {
    cfgr_names *items = cfgr_alloc_items(list.len, sizeof *items);
    for (size_t i = 0; i < list.len; i++) {
        items[i] = cfgr_names_in(list.ptr[i]);
    }
    return (cfgr_groups){items, list.len};
}

cfgr_desired_set cfgr_desired_set_in(const configurator_handler_desired_desired_set_t *from) {
    cfgr_desired_entry *entries = cfgr_alloc_items(from->entries.len, sizeof *entries);
    for (size_t i = 0; i < from->entries.len; i++) {
        entries[i] = entry_in(&from->entries.ptr[i]);
    }
    cfgr_desired_set to = {
        .is_said = true,
        .entries = {entries, from->entries.len, from->entries.len},
        .options = {.allow_empty = from->allow_empty},
        .pre_terminate = cfgr_requests_in(from->pre_terminate.ptr, from->pre_terminate.len),
    };
    if (from->termination_policy.is_some) {
        const configurator_handler_desired_termination_t *termination = &from->termination_policy.val;
        if (termination->tag == CONFIGURATOR_HANDLER_DESIRED_TERMINATION_PATH) {
            to.options.termination_policy_at = cfgr_text_in(termination->val.path);
        } else {
            to.options.termination_policy = (cfgr_termination_policy)(termination->val.policy + 1);
        }
    }
    if (from->orders.is_some) {
        to.options.provision = groups_in(from->orders.val.provision);
        to.options.update = groups_in(from->orders.val.update);
        to.options.terminate = groups_in(from->orders.val.terminate);
    }
    return to;
}

/* --- To the host --- */

static configurator_handler_desired_config_content_t config_out(const cfgr_config_content *from) {
    configurator_handler_desired_config_content_t to = {.value = cfgr_text_out(from->value)};
    TEXT_OUT(to.partition, from->partition);
    switch (from->kind) {
    case CFGR_CONFIG_ENTRY:
        to.key.tag = CONFIGURATOR_HANDLER_DESIRED_CONFIG_KEY_RESOURCE;
        to.key.val.resource.config_type = (uint8_t)from->entry.type;
        to.key.val.resource.resource_name = cfgr_text_out(from->entry.name);
        TEXT_OUT(to.key.val.resource.resource_uid, from->entry.uid);
        TEXT_OUT(to.key.val.resource.namespace_, from->entry.namespace);
        TEXT_OUT(to.key.val.resource.workload_kind, from->entry.workload_kind);
        break;
    case CFGR_CONFIG_APP_CONF:
        to.key.tag = CONFIGURATOR_HANDLER_DESIRED_CONFIG_KEY_APP_CONF;
        to.key.val.app_conf.pod_name = cfgr_text_out(from->app_conf.pod);
        TEXT_OUT(to.key.val.app_conf.namespace_, from->app_conf.namespace);
        to.key.val.app_conf.key = cfgr_text_out(from->app_conf.key);
        break;
    case CFGR_CONFIG_BASIC:
        to.key.tag = CONFIGURATOR_HANDLER_DESIRED_CONFIG_KEY_BASIC;
        to.key.val.basic = cfgr_text_out(from->basic);
        break;
    case CFGR_CONFIG_TWO_LAYERS:
        to.key.tag = CONFIGURATOR_HANDLER_DESIRED_CONFIG_KEY_TWO_LAYERS;
        to.key.val.two_layers.second_path = cfgr_text_out(from->two_layers.second);
        to.key.val.two_layers.third_path = cfgr_text_out(from->two_layers.third);
        break;
    }
    return to;
}

static configurator_handler_desired_secret_content_t secret_out(const cfgr_secret_content *from) {
    configurator_handler_desired_secret_content_t to = {.secret_name = cfgr_text_out(from->name)};
    TEXT_OUT(to.value, from->value);
    TEXT_OUT(to.partition, from->partition);
    return to;
}

static configurator_handler_desired_content_t content_out(const cfgr_content *from) {
    configurator_handler_desired_content_t to = {0};
    switch (from->kind) {
    case CFGR_CONTENT_KUBERNETES:
        to.tag = CONFIGURATOR_HANDLER_DESIRED_CONTENT_KUBERNETES;
        to.val.kubernetes = cfgr_text_out(from->kubernetes);
        break;
    case CFGR_CONTENT_CONFIG:
        to.tag = CONFIGURATOR_HANDLER_DESIRED_CONTENT_CONFIG;
        to.val.config = config_out(&from->config);
        break;
    case CFGR_CONTENT_SECRET:
        to.tag = CONFIGURATOR_HANDLER_DESIRED_CONTENT_SECRET;
        to.val.secret = secret_out(&from->secret);
        break;
    }
    return to;
}

static configurator_handler_desired_desired_entry_t entry_out(const cfgr_desired_entry *from) {
    configurator_handler_desired_desired_entry_t to = {
        .name = cfgr_text_out(from->name),
        .content = content_out(&from->content),
        .depends_on = cfgr_names_out(from->depends_on),
        .ignored_paths = cfgr_names_out(from->ignored_paths),
    };
    READINESS_OUT(to.ready_when, from->ready_when);
    TEXT_OUT(to.failed_when, from->failed_when);
    NUMBER_OUT(to.timeout, from->timeout_ms);
    ENUM_OUT(to.on_existing, from->on_existing);
    ENUM_OUT(to.on_conflict, from->on_conflict);
    ENUM_OUT(to.on_immutable, from->on_immutable);
    ENUM_OUT(to.on_delete, from->on_delete);
    return to;
}

static configurator_handler_desired_option_termination_t termination_out(const cfgr_desired_options *from) {
    configurator_handler_desired_option_termination_t to = {0};
    if (from->termination_policy_at != NULL) {
        to.is_some = true;
        to.val.tag = CONFIGURATOR_HANDLER_DESIRED_TERMINATION_PATH;
        to.val.val.path = cfgr_text_out(from->termination_policy_at);
    } else if (from->termination_policy != CFGR_TERMINATION_UNSAID) {
        to.is_some = true;
        to.val.tag = CONFIGURATOR_HANDLER_DESIRED_TERMINATION_POLICY;
        to.val.val.policy = (uint8_t)(from->termination_policy - 1);
    }
    return to;
}

static configurator_list_list_string_t groups_out(cfgr_groups groups) {
    configurator_list_string_t *items = cfgr_alloc_items(groups.count, sizeof *items);
    for (size_t i = 0; i < groups.count; i++) {
        items[i] = cfgr_names_out(groups.items[i]);
    }
    return (configurator_list_list_string_t){items, groups.count};
}

static configurator_handler_desired_option_orders_t orders_out(const cfgr_desired_options *from) {
    return (configurator_handler_desired_option_orders_t){
        .is_some = from->provision.count + from->update.count + from->terminate.count != 0,
        .val = {groups_out(from->provision), groups_out(from->update), groups_out(from->terminate)},
    };
}

configurator_handler_desired_desired_set_t cfgr_desired_set_out(const cfgr_desired_set *from) {
    configurator_handler_desired_desired_entry_t *entries = cfgr_alloc_items(from->entries.count, sizeof *entries);
    for (size_t i = 0; i < from->entries.count; i++) {
        entries[i] = entry_out(&from->entries.items[i]);
    }
    return (configurator_handler_desired_desired_set_t){
        .entries = {entries, from->entries.count},
        .allow_empty = from->options.allow_empty,
        .termination_policy = termination_out(&from->options),
        .orders = orders_out(&from->options),
        .pre_terminate = {cfgr_requests_out(&from->pre_terminate), from->pre_terminate.count},
    };
}
