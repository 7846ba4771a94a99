/* Operations of the config store. */
#include "component.h"

/* The contract has its verbs in another order. */
static const uint8_t entry_verbs[] = {
    [CFGR_CONFIG_GET] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_VERB_GET,
    [CFGR_CONFIG_CREATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_VERB_CREATE,
    [CFGR_CONFIG_UPDATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_VERB_UPDATE,
    [CFGR_CONFIG_DELETE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_VERB_DELETE,
};

/* UINT8_MAX stands for a verb that the contract lacks. */
static const uint8_t app_conf_verbs[] = {
    [CFGR_CONFIG_GET] = UINT8_MAX,
    [CFGR_CONFIG_CREATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_APP_CONF_VERB_CREATE,
    [CFGR_CONFIG_UPDATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_APP_CONF_VERB_UPDATE,
    [CFGR_CONFIG_DELETE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_APP_CONF_VERB_DELETE,
};

static const uint8_t basic_verbs[] = {
    [CFGR_CONFIG_GET] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_BASIC_VERB_GET,
    [CFGR_CONFIG_CREATE] = UINT8_MAX,
    [CFGR_CONFIG_UPDATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_BASIC_VERB_PUT,
    [CFGR_CONFIG_DELETE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_BASIC_VERB_DELETE,
};

static const uint8_t two_layers_verbs[] = {
    [CFGR_CONFIG_GET] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_TWO_LAYERS_VERB_GET,
    [CFGR_CONFIG_CREATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_TWO_LAYERS_VERB_CREATE,
    [CFGR_CONFIG_UPDATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_TWO_LAYERS_VERB_UPDATE,
    [CFGR_CONFIG_DELETE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_TWO_LAYERS_VERB_DELETE,
};

/* The verb of the SDK for that of the contract. */
static cfgr_config_verb verb_in(const uint8_t verbs[static CFGR_CONFIG_DELETE + 1], uint8_t verb) {
    cfgr_config_verb found = CFGR_CONFIG_GET;
    while (found < CFGR_CONFIG_DELETE && verbs[found] != verb) {
        found++;
    }
    return found;
}

/* --- From the host --- */

static cfgr_config entry_in(const configurator_handler_requests_config_resource_request_t *from) {
    return (cfgr_config){
        .kind = CFGR_CONFIG_ENTRY,
        .verb = verb_in(entry_verbs, from->config_verb),
        .entry =
            {
                .type = (cfgr_entry_type)from->config_type,
                .namespace = TEXT_IN(from->namespace_),
                .workload_kind = TEXT_IN(from->workload_kind),
                .name = cfgr_text_in(from->resource_name),
                .uid = TEXT_IN(from->resource_uid),
            },
        .value = TEXT_IN(from->value),
    };
}

static cfgr_config app_conf_in(const configurator_handler_requests_config_app_conf_request_t *from) {
    return (cfgr_config){
        .kind = CFGR_CONFIG_APP_CONF,
        .verb = verb_in(app_conf_verbs, from->verb),
        .app_conf =
            {
                .pod = cfgr_text_in(from->pod_name),
                .key = cfgr_text_in(from->key),
                .namespace = TEXT_IN(from->namespace_),
            },
        .value = TEXT_IN(from->value),
    };
}

static cfgr_config basic_in(const configurator_handler_requests_config_basic_request_t *from) {
    return (cfgr_config){
        .kind = CFGR_CONFIG_BASIC,
        .verb = verb_in(basic_verbs, from->verb),
        .basic = cfgr_text_in(from->key),
        .value = TEXT_IN(from->value),
    };
}

static cfgr_config two_layers_in(const configurator_handler_requests_config_two_layers_request_t *from) {
    return (cfgr_config){
        .kind = CFGR_CONFIG_TWO_LAYERS,
        .verb = verb_in(two_layers_verbs, from->verb),
        .two_layers = {cfgr_text_in(from->second_path), cfgr_text_in(from->third_path)},
        .value = TEXT_IN(from->value),
    };
}

/* An operation of a transaction. */
static cfgr_config part_in(const configurator_handler_requests_config_operation_t *from) {
    switch (from->tag) {
    case CONFIGURATOR_HANDLER_REQUESTS_CONFIG_OPERATION_RESOURCE:
        return entry_in(&from->val.resource);
    case CONFIGURATOR_HANDLER_REQUESTS_CONFIG_OPERATION_APP_CONF:
        return app_conf_in(&from->val.app_conf);
    case CONFIGURATOR_HANDLER_REQUESTS_CONFIG_OPERATION_BASIC:
        return basic_in(&from->val.basic);
    default:
        return two_layers_in(&from->val.two_layers);
    }
}

static cfgr_transaction transaction_in(configurator_handler_requests_list_config_operation_t list) {
    cfgr_config *operations = cfgr_alloc_items(list.len, sizeof *operations);
    for (size_t i = 0; i < list.len; i++) {
        operations[i] = part_in(&list.ptr[i]);
    }
    return (cfgr_transaction){operations, list.len, list.len};
}

cfgr_operation cfgr_config_in(const configurator_handler_requests_operation_t *from) {
    switch (from->tag) {
    case CONFIGURATOR_HANDLER_REQUESTS_OPERATION_CONFIG_RESOURCE:
        return CFGR_OPERATION(entry_in(&from->val.config_resource));
    case CONFIGURATOR_HANDLER_REQUESTS_OPERATION_CONFIG_APP_CONF:
        return CFGR_OPERATION(app_conf_in(&from->val.config_app_conf));
    case CONFIGURATOR_HANDLER_REQUESTS_OPERATION_CONFIG_BASIC:
        return CFGR_OPERATION(basic_in(&from->val.config_basic));
    case CONFIGURATOR_HANDLER_REQUESTS_OPERATION_CONFIG_TWO_LAYERS:
        return CFGR_OPERATION(two_layers_in(&from->val.config_two_layers));
    default:
        return CFGR_OPERATION(transaction_in(from->val.config_transaction.operations));
    }
}

/* --- To the host --- */

static configurator_handler_requests_config_resource_request_t entry_out(const cfgr_config *from) {
    configurator_handler_requests_config_resource_request_t to = {
        .config_type = (uint8_t)from->entry.type,
        .config_verb = entry_verbs[from->verb],
        .resource_name = cfgr_text_out(from->entry.name),
    };
    TEXT_OUT(to.resource_uid, from->entry.uid);
    TEXT_OUT(to.namespace_, from->entry.namespace);
    TEXT_OUT(to.workload_kind, from->entry.workload_kind);
    TEXT_OUT(to.value, from->value);
    return to;
}

static configurator_handler_requests_config_app_conf_request_t app_conf_out(const cfgr_config *from) {
    configurator_handler_requests_config_app_conf_request_t to = {
        .verb = app_conf_verbs[from->verb],
        .pod_name = cfgr_text_out(from->app_conf.pod),
        .key = cfgr_text_out(from->app_conf.key),
    };
    TEXT_OUT(to.namespace_, from->app_conf.namespace);
    TEXT_OUT(to.value, from->value);
    return to;
}

static configurator_handler_requests_config_basic_request_t basic_out(const cfgr_config *from) {
    configurator_handler_requests_config_basic_request_t to = {.verb = basic_verbs[from->verb], .key = cfgr_text_out(from->basic)};
    TEXT_OUT(to.value, from->value);
    return to;
}

static configurator_handler_requests_config_two_layers_request_t two_layers_out(const cfgr_config *from) {
    configurator_handler_requests_config_two_layers_request_t to = {
        .verb = two_layers_verbs[from->verb],
        .second_path = cfgr_text_out(from->two_layers.second),
        .third_path = cfgr_text_out(from->two_layers.third),
    };
    TEXT_OUT(to.value, from->value);
    return to;
}

/* An operation of a transaction. */
static configurator_handler_requests_config_operation_t part_out(const cfgr_config *from) {
    configurator_handler_requests_config_operation_t to = {0};
    switch (from->kind) {
    case CFGR_CONFIG_ENTRY:
        to.tag = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_OPERATION_RESOURCE;
        to.val.resource = entry_out(from);
        break;
    case CFGR_CONFIG_APP_CONF:
        to.tag = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_OPERATION_APP_CONF;
        to.val.app_conf = app_conf_out(from);
        break;
    case CFGR_CONFIG_BASIC:
        to.tag = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_OPERATION_BASIC;
        to.val.basic = basic_out(from);
        break;
    case CFGR_CONFIG_TWO_LAYERS:
        to.tag = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_OPERATION_TWO_LAYERS;
        to.val.two_layers = two_layers_out(from);
        break;
    }
    return to;
}

void cfgr_config_out(const cfgr_config *from, configurator_handler_requests_operation_t *to) {
    switch (from->kind) {
    case CFGR_CONFIG_ENTRY:
        to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_CONFIG_RESOURCE;
        to->val.config_resource = entry_out(from);
        break;
    case CFGR_CONFIG_APP_CONF:
        to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_CONFIG_APP_CONF;
        to->val.config_app_conf = app_conf_out(from);
        break;
    case CFGR_CONFIG_BASIC:
        to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_CONFIG_BASIC;
        to->val.config_basic = basic_out(from);
        break;
    case CFGR_CONFIG_TWO_LAYERS:
        to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_CONFIG_TWO_LAYERS;
        to->val.config_two_layers = two_layers_out(from);
        break;
    }
}

void cfgr_transaction_out(const cfgr_transaction *from, configurator_handler_requests_operation_t *to) {
    configurator_handler_requests_config_operation_t *items = cfgr_alloc_items(from->count, sizeof *items);
    for (size_t i = 0; i < from->count; i++) {
        items[i] = part_out(&from->operations[i]);
    }
    to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_CONFIG_TRANSACTION;
    to->val.config_transaction.operations = (configurator_handler_requests_list_config_operation_t){items, from->count};
}
