/* Between the SDK's types and those that are made of the contract. Compiled into every module. */
#include <string.h>

#include "configurator.h"

#include <configurator_sdk.h>

/* Of the SDK: a block whose content is not set; the bytes of a text, and those before a U+0000. */
void *cfgr_place(size_t size, size_t alignment);
size_t cfgr_size(const char *text);
size_t cfgr_before_zero(const char *text, size_t size);

/*
 * Memory for what the host hands in. One byte more than it asks for: a text then ends with a zero, as texts of the SDK do.
 */
__attribute__((__export_name__("cabi_realloc"))) void *cabi_realloc(void *block, size_t old_size, size_t alignment, size_t size) {
    char *made = cfgr_place(size + 1, alignment);
    if (old_size != 0) {
        memcpy(made, block, old_size < size ? old_size : size);
    }
    made[size] = '\0';
    return made;
}

/* Nothing is freed: an instance lives for one call. These take the place of what would free an output, and are not exported. */
void __wasm_export_exports_configurator_handler_handler_describe_post_return(uint8_t *result) {
    (void)result;
}

void __wasm_export_exports_configurator_handler_handler_handle_post_return(uint8_t *result) {
    (void)result;
}

/* --- From the host --- */

static const char *text_in(configurator_string_t text) {
    return text.len == 0 ? "" : (const char *)text.ptr;
}

#define OPTION_IN(option) ((option).is_some ? text_in((option).val) : NULL)

static cfgr_headers headers_in(configurator_list_tuple2_string_string_t list) {
    cfgr_header *items = cfgr_alloc_items(list.len, sizeof *items);
    for (size_t i = 0; i < list.len; i++) {
        items[i] = (cfgr_header){text_in(list.ptr[i].f0), text_in(list.ptr[i].f1)};
    }
    return (cfgr_headers){items, list.len};
}

static cfgr_result result_in(const configurator_handler_requests_request_result_t *from) {
    const char **objects = cfgr_alloc_items(from->query_objects.len, sizeof *objects);
    for (size_t i = 0; i < from->query_objects.len; i++) {
        objects[i] = text_in(from->query_objects.ptr[i]);
    }
    cfgr_request_error *error = NULL;
    if (from->error.is_some) {
        error = cfgr_alloc(sizeof *error);
        *error = (cfgr_request_error){
            .kind = (cfgr_error_kind)from->error.val.kind,
            .message = text_in(from->error.val.message),
            .retryable = from->error.val.retryable,
            .status = from->error.val.status.is_some ? from->error.val.status.val : 0,
        };
    }
    cfgr_http_response *response = NULL;
    if (from->http_response.is_some) {
        response = cfgr_alloc(sizeof *response);
        *response = (cfgr_http_response){
            .status = from->http_response.val.status,
            .headers = headers_in(from->http_response.val.headers),
            .body = from->http_response.val.body.len == 0 ? "" : (const char *)from->http_response.val.body.ptr,
            .body_size = from->http_response.val.body.len,
        };
    }
    return (cfgr_result){
        .request_name = text_in(from->request_name),
        .sink = (cfgr_sink)from->request_sink,
        .is_declarative = from->is_declarative,
        .objects = objects,
        .object_count = from->query_objects.len,
        .created_timestamp = text_in(from->created_timestamp),
        .finished_timestamp = OPTION_IN(from->finished_timestamp),
        .error = error,
        .response = response,
    };
}

static cfgr_results results_in(const configurator_handler_requests_request_result_t *from, size_t count) {
    cfgr_result *items = cfgr_alloc_items(count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        items[i] = result_in(&from[i]);
    }
    return (cfgr_results){items, count};
}

static cfgr_result_entries entries_in(exports_configurator_handler_handler_list_tuple2_string_result_entry_t list) {
    cfgr_result_entry *items = cfgr_alloc_items(list.len, sizeof *items);
    for (size_t i = 0; i < list.len; i++) {
        const exports_configurator_handler_handler_result_entry_t *entry = &list.ptr[i].f1;
        items[i].key = text_in(list.ptr[i].f0);
        items[i].is_group = entry->tag == CONFIGURATOR_HANDLER_REQUESTS_RESULT_ENTRY_GROUP;
        items[i].results =
            items[i].is_group ? results_in(entry->val.group.ptr, entry->val.group.len) : results_in(&entry->val.one, 1);
    }
    return (cfgr_result_entries){items, list.len};
}

static cfgr_documents documents_in(exports_configurator_handler_handler_list_tuple2_string_json_t list) {
    cfgr_document *items = cfgr_alloc_items(list.len, sizeof *items);
    for (size_t i = 0; i < list.len; i++) {
        items[i] = (cfgr_document){text_in(list.ptr[i].f0), text_in(list.ptr[i].f1)};
    }
    return (cfgr_documents){items, list.len};
}

static const cfgr_error *error_in(const exports_configurator_handler_handler_handler_error_t *from) {
    cfgr_error *error = cfgr_alloc(sizeof *error);
    *error = (cfgr_error){
        .message = text_in(from->message),
        .fatal = from->fatal,
        .retry_after_ms = from->retry_after.is_some ? from->retry_after.val : 0,
        .code = OPTION_IN(from->code),
    };
    return error;
}

static const cfgr_handler_state *state_in(const exports_configurator_handler_handler_handler_state_t *from) {
    cfgr_handler_state *state = cfgr_alloc(sizeof *state);
    *state = (cfgr_handler_state){
        .start_time = OPTION_IN(from->start_time),
        .end_time = OPTION_IN(from->end_time),
        .done = from->done,
        .failed = from->failed,
        .fatal = from->fatal,
        .error = from->error.is_some ? error_in(&from->error.val) : NULL,
        .data = OPTION_IN(from->data),
        .results = entries_in(from->request_results),
    };
    return state;
}

static cfgr_cause cause_in(const exports_configurator_handler_handler_cause_t *from) {
    cfgr_cause cause = {.kind = (cfgr_cause_kind)from->tag};
    if (from->tag == EXPORTS_CONFIGURATOR_HANDLER_HANDLER_CAUSE_SIGNAL) {
        cause.signal = text_in(from->val.signal.name);
        cause.signal_data = OPTION_IN(from->val.signal.data);
    } else if (from->tag == EXPORTS_CONFIGURATOR_HANDLER_HANDLER_CAUSE_CHANGED) {
        cause.changed = (cfgr_object_key){
            .group = text_in(from->val.changed.group),
            .version = text_in(from->val.changed.version),
            .plural = text_in(from->val.changed.plural),
            .namespace = text_in(from->val.changed.namespace_),
            .name = text_in(from->val.changed.name),
        };
    }
    return cause;
}

static cfgr_input input_in(const exports_configurator_handler_handler_handler_input_t *from) {
    bool is_batch = from->resource_object.tag == EXPORTS_CONFIGURATOR_HANDLER_HANDLER_RESOURCE_OBJECT_BATCH;
    size_t count = is_batch ? from->resource_object.val.batch.len : 1;
    const exports_configurator_handler_handler_watched_object_t *objects =
        is_batch ? from->resource_object.val.batch.ptr : &from->resource_object.val.one;
    cfgr_watched *watched = cfgr_alloc_items(count, sizeof *watched);
    for (size_t i = 0; i < count; i++) {
        watched[i] = (cfgr_watched){text_in(objects[i].object), (cfgr_watch_event)objects[i].event};
    }
    return (cfgr_input){
        .is_batch = is_batch,
        .objects = watched,
        .object_count = count,
        .results = entries_in(from->request_results),
        .arguments = documents_in(from->pass_through_args),
        .last = from->last.is_some ? state_in(&from->last.val) : NULL,
        .outputs = documents_in(from->outputs),
        .context =
            {
                .configurator = text_in(from->context.configurator),
                .phase = text_in(from->context.phase),
                .node = text_in(from->context.node),
                .entry = from->context.entry,
                .attempt = from->context.attempt,
                .cause = cause_in(&from->context.cause),
                .now = text_in(from->context.now),
                .seed = from->context.seed,
                .parameters = text_in(from->context.parameters),
                .run_id = text_in(from->context.run_id),
            },
    };
}

/* --- To the host --- */

/* A text; NULL is an empty one. U+0000, which the SDK writes as two bytes, becomes the one that it is. */
static configurator_string_t text_out(const char *text) {
    if (text == NULL) {
        text = "";
    }
    size_t size = cfgr_size(text);
    if (cfgr_before_zero(text, size) == size) {
        return (configurator_string_t){(uint8_t *)text, size};
    }
    char *copy = cfgr_alloc(size);
    size_t kept = 0;
    for (size_t i = 0; i < size; i++) {
        bool is_zero = text[i] == '\xc0' && text[i + 1] == '\x80';
        copy[kept++] = is_zero ? '\0' : text[i];
        i += is_zero ? 1 : 0;
    }
    return (configurator_string_t){(uint8_t *)copy, kept};
}

/* A text that may be missing, into an option of the contract. */
#define OPTION_OUT(option, text)                \
    do {                                        \
        const char *option_text_ = (text);      \
        (option).is_some = option_text_ != NULL; \
        if (option_text_ != NULL) {             \
            (option).val = text_out(option_text_); \
        }                                       \
    } while (0)

/* A value of the SDK whose 0 is unsaid, into an option of the contract whose values begin with 0. */
#define ENUM_OUT(option, value)                  \
    do {                                         \
        (option).is_some = (value) != 0;         \
        (option).val = (uint8_t)((value) != 0 ? (value) - 1 : 0); \
    } while (0)

static configurator_list_string_t names_out(cfgr_names names) {
    configurator_string_t *items = cfgr_alloc_items(names.count, sizeof *items);
    for (size_t i = 0; i < names.count; i++) {
        items[i] = text_out(names.items[i]);
    }
    return (configurator_list_string_t){items, names.count};
}

static configurator_list_tuple2_string_string_t headers_out(cfgr_headers headers) {
    configurator_tuple2_string_string_t *items = cfgr_alloc_items(headers.count, sizeof *items);
    for (size_t i = 0; i < headers.count; i++) {
        items[i] = (configurator_tuple2_string_string_t){text_out(headers.items[i].name), text_out(headers.items[i].value)};
    }
    return (configurator_list_tuple2_string_string_t){items, headers.count};
}

static configurator_handler_requests_option_object_ref_t ref_out(cfgr_object_ref of) {
    configurator_handler_requests_option_object_ref_t to = {.is_some = of.name != NULL};
    to.val.namespace_ = text_out(of.namespace);
    to.val.name = text_out(of.name);
    return to;
}

static configurator_handler_requests_option_readiness_t readiness_out(cfgr_readiness from) {
    configurator_handler_requests_option_readiness_t to = {.is_some = from.kind != CFGR_READINESS_UNSAID};
    if (to.is_some) {
        to.val.tag = (uint8_t)(from.kind - 1);
        to.val.val.expression = text_out(from.expression);
    }
    return to;
}

static configurator_handler_requests_kubernetes_resource_request_t kubernetes_out(const cfgr_kubernetes *from) {
    configurator_handler_requests_kubernetes_resource_request_t to = {
        .group = text_out(from->resource.group),
        .version = text_out(from->resource.version),
        .plural = text_out(from->resource.plural),
        .kind = text_out(from->resource.kind),
        .namespace_ = text_out(from->namespace),
        .name = text_out(from->name),
        .verb = (uint8_t)from->verb,
        .precheck_exist = {.is_some = from->must_not_exist, .val = false},
        .force = {.is_some = from->force, .val = true},
        .cached = {.is_some = from->cached, .val = true},
    };
    OPTION_OUT(to.subresource, from->subresource);
    OPTION_OUT(to.field_selector, from->field_selector);
    OPTION_OUT(to.label_selector, from->label_selector);
    OPTION_OUT(to.resource_body, from->body);
    ENUM_OUT(to.patch_type, from->patch_type);
    ENUM_OUT(to.propagation_policy, from->propagation);
    to.precondition.is_some = from->uid != NULL || from->resource_version != NULL;
    OPTION_OUT(to.precondition.val.uid, from->uid);
    OPTION_OUT(to.precondition.val.resource_version, from->resource_version);
    return to;
}

static configurator_handler_requests_config_resource_request_t entry_out(const cfgr_config *from) {
    /* The contract has its verbs in another order. */
    static const uint8_t verbs[] = {
        [CFGR_CONFIG_GET] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_VERB_GET,
        [CFGR_CONFIG_CREATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_VERB_CREATE,
        [CFGR_CONFIG_UPDATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_VERB_UPDATE,
        [CFGR_CONFIG_DELETE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_VERB_DELETE,
    };
    configurator_handler_requests_config_resource_request_t to = {
        .config_type = (uint8_t)from->entry.type,
        .config_verb = verbs[from->verb],
        .resource_name = text_out(from->entry.name),
    };
    OPTION_OUT(to.resource_uid, from->entry.uid);
    OPTION_OUT(to.namespace_, from->entry.namespace);
    OPTION_OUT(to.workload_kind, from->entry.workload_kind);
    OPTION_OUT(to.value, from->value);
    return to;
}

static configurator_handler_requests_config_app_conf_request_t app_conf_out(const cfgr_config *from) {
    static const uint8_t verbs[] = {
        [CFGR_CONFIG_CREATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_APP_CONF_VERB_CREATE,
        [CFGR_CONFIG_UPDATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_APP_CONF_VERB_UPDATE,
        [CFGR_CONFIG_DELETE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_APP_CONF_VERB_DELETE,
    };
    configurator_handler_requests_config_app_conf_request_t to = {
        .verb = verbs[from->verb],
        .pod_name = text_out(from->app_conf.pod),
        .key = text_out(from->app_conf.key),
    };
    OPTION_OUT(to.namespace_, from->app_conf.namespace);
    OPTION_OUT(to.value, from->value);
    return to;
}

static configurator_handler_requests_config_basic_request_t basic_out(const cfgr_config *from) {
    static const uint8_t verbs[] = {
        [CFGR_CONFIG_GET] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_BASIC_VERB_GET,
        [CFGR_CONFIG_UPDATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_BASIC_VERB_PUT,
        [CFGR_CONFIG_DELETE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_BASIC_VERB_DELETE,
    };
    configurator_handler_requests_config_basic_request_t to = {.verb = verbs[from->verb], .key = text_out(from->basic)};
    OPTION_OUT(to.value, from->value);
    return to;
}

static configurator_handler_requests_config_two_layers_request_t two_layers_out(const cfgr_config *from) {
    static const uint8_t verbs[] = {
        [CFGR_CONFIG_GET] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_TWO_LAYERS_VERB_GET,
        [CFGR_CONFIG_CREATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_TWO_LAYERS_VERB_CREATE,
        [CFGR_CONFIG_UPDATE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_TWO_LAYERS_VERB_UPDATE,
        [CFGR_CONFIG_DELETE] = CONFIGURATOR_HANDLER_REQUESTS_CONFIG_TWO_LAYERS_VERB_DELETE,
    };
    configurator_handler_requests_config_two_layers_request_t to = {
        .verb = verbs[from->verb],
        .second_path = text_out(from->two_layers.second),
        .third_path = text_out(from->two_layers.third),
    };
    OPTION_OUT(to.value, from->value);
    return to;
}

/* An operation of a transaction. */
static configurator_handler_requests_config_operation_t config_out(const cfgr_config *from) {
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

/* An operation by itself, into one of the contract's. */
static void single_config_out(const cfgr_config *from, configurator_handler_requests_operation_t *to) {
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

static void transaction_out(const cfgr_transaction *from, configurator_handler_requests_operation_t *to) {
    configurator_handler_requests_config_operation_t *items = cfgr_alloc_items(from->count, sizeof *items);
    for (size_t i = 0; i < from->count; i++) {
        items[i] = config_out(&from->operations[i]);
    }
    to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_CONFIG_TRANSACTION;
    to->val.config_transaction.operations = (configurator_handler_requests_list_config_operation_t){items, from->count};
}

static void secret_out(const cfgr_secret *from, configurator_handler_requests_operation_t *to) {
    to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_SECRET;
    to->val.secret.secret_name = text_out(from->name);
    to->val.secret.verb = (uint8_t)from->verb;
    OPTION_OUT(to->val.secret.value, from->value);
}

static void http_out(const cfgr_http_request *from, configurator_handler_requests_operation_t *to) {
    to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_HTTP;
    to->val.http.method = text_out(from->method);
    to->val.http.url = text_out(from->url);
    to->val.http.headers = headers_out(from->headers);
    to->val.http.body.is_some = from->body != NULL;
    to->val.http.body.val = (configurator_list_u8_t){(uint8_t *)from->body, from->body_size};
}

static void request_out(const cfgr_request *from, configurator_handler_requests_resource_request_t *to) {
    to->request_name = text_out(from->name);
    to->is_declarative = from->is_declarative;
    OPTION_OUT(to->group_by, from->group_by);
    to->bootstrap_dep = from->bootstrap_dep;
    to->of = ref_out(from->of);
    ENUM_OUT(to->on_error, from->on_error);
    to->depends_on = names_out(from->depends_on);
    to->ready_when = readiness_out(from->ready_when);
    to->once = from->once;
    to->timeout = (configurator_handler_requests_option_milliseconds_t){from->timeout_ms != 0, from->timeout_ms};
    OPTION_OUT(to->partition, from->partition);
    switch (from->operation.kind) {
    case CFGR_OPERATION_KUBERNETES:
        to->operation.tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_KUBERNETES;
        to->operation.val.kubernetes = kubernetes_out(&from->operation.kubernetes);
        break;
    case CFGR_OPERATION_CONFIG:
        single_config_out(&from->operation.config, &to->operation);
        break;
    case CFGR_OPERATION_TRANSACTION:
        transaction_out(&from->operation.transaction, &to->operation);
        break;
    case CFGR_OPERATION_SECRET:
        secret_out(&from->operation.secret, &to->operation);
        break;
    case CFGR_OPERATION_HTTP:
        http_out(&from->operation.http, &to->operation);
        break;
    }
}

static exports_configurator_handler_handler_handler_error_t error_out(const cfgr_error *from) {
    exports_configurator_handler_handler_handler_error_t to = {
        .message = text_out(from->message),
        .fatal = from->fatal,
        .retry_after = {.is_some = from->retry_after_ms != 0, .val = from->retry_after_ms},
    };
    OPTION_OUT(to.code, from->code);
    return to;
}

static void wake_out(const cfgr_wake *from, exports_configurator_handler_handler_wake_t *to) {
    exports_configurator_handler_handler_object_key_t *keys = cfgr_alloc_items(from->objects.count, sizeof *keys);
    for (size_t i = 0; i < from->objects.count; i++) {
        const cfgr_object_key *key = &from->objects.items[i];
        keys[i] = (exports_configurator_handler_handler_object_key_t){
            .group = text_out(key->group),
            .version = text_out(key->version),
            .plural = text_out(key->plural),
            .namespace_ = text_out(key->namespace),
            .name = text_out(key->name),
        };
    }
    to->after = (exports_configurator_handler_handler_option_milliseconds_t){from->after_ms != 0, from->after_ms};
    to->signals = names_out(from->signals);
    to->objects = (exports_configurator_handler_handler_list_object_key_t){keys, from->objects.count};
}

static void outcome_out(const cfgr_outcome *from, exports_configurator_handler_handler_outcome_t *to) {
    to->tag = (uint8_t)from->kind;
    switch (from->kind) {
    case CFGR_DONE:
    case CFGR_STOP:
        break;
    case CFGR_AGAIN:
        to->val.again =
            (exports_configurator_handler_handler_option_milliseconds_t){from->again_after_ms != 0, from->again_after_ms};
        break;
    case CFGR_WAIT:
        wake_out(&from->wake, &to->val.wait);
        break;
    case CFGR_FAILED:
        if (from->error == NULL) {
            cfgr_panic_at("an output has failed without an error", NULL, 0);
        }
        to->val.failed = error_out(from->error);
        break;
    }
}

static void desired_out(const cfgr_output *from, exports_configurator_handler_handler_option_desired_set_t *to) {
    size_t count = from->desired.count;
    exports_configurator_handler_handler_desired_object_t *items = cfgr_alloc_items(count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        const cfgr_desired_object *object = &from->desired.items[i];
        items[i] = (exports_configurator_handler_handler_desired_object_t){
            .name = text_out(object->name),
            .object = text_out(object->object),
            .depends_on = names_out(object->depends_on),
            .retain = object->retain,
        };
        configurator_handler_requests_option_readiness_t ready_when = readiness_out(object->ready_when);
        items[i].ready_when.is_some = ready_when.is_some;
        items[i].ready_when.val = ready_when.val;
    }
    to->is_some = from->desired.is_said;
    to->val.objects = (exports_configurator_handler_handler_list_desired_object_t){items, count};
    to->val.allow_empty = from->desired.allow_empty;
}

static void output_out(const cfgr_output *from, exports_configurator_handler_handler_handler_output_t *to) {
    configurator_handler_requests_resource_request_t *requests = cfgr_alloc_items(from->requests.count, sizeof *requests);
    for (size_t i = 0; i < from->requests.count; i++) {
        request_out(&from->requests.items[i], &requests[i]);
    }
    to->requests.resource_requests =
        (configurator_handler_requests_list_resource_request_t){requests, from->requests.count};
    ENUM_OUT(to->requests.execute_strategy, from->execute_strategy);
    ENUM_OUT(to->requests.batch_error_strategy, from->batch_error_strategy);

    exports_configurator_handler_handler_tuple2_string_json_t *arguments =
        cfgr_alloc_items(from->arguments.count, sizeof *arguments);
    for (size_t i = 0; i < from->arguments.count; i++) {
        arguments[i].f0 = text_out(from->arguments.items[i].name);
        arguments[i].f1 = text_out(from->arguments.items[i].text);
    }
    to->pass_through_args =
        (exports_configurator_handler_handler_list_tuple2_string_json_t){arguments, from->arguments.count};

    exports_configurator_handler_handler_status_update_t *statuses = cfgr_alloc_items(from->statuses.count, sizeof *statuses);
    for (size_t i = 0; i < from->statuses.count; i++) {
        configurator_handler_requests_option_object_ref_t of = ref_out(from->statuses.items[i].of);
        statuses[i].of.is_some = of.is_some;
        statuses[i].of.val = of.val;
        statuses[i].status = text_out(from->statuses.items[i].status);
    }
    to->statuses = (exports_configurator_handler_handler_list_status_update_t){statuses, from->statuses.count};

    exports_configurator_handler_handler_event_t *events = cfgr_alloc_items(from->events.count, sizeof *events);
    for (size_t i = 0; i < from->events.count; i++) {
        configurator_handler_requests_option_object_ref_t of = ref_out(from->events.items[i].of);
        events[i].of.is_some = of.is_some;
        events[i].of.val = of.val;
        events[i].event_type = (uint8_t)from->events.items[i].type;
        events[i].reason = text_out(from->events.items[i].reason);
        events[i].message = text_out(from->events.items[i].message);
    }
    to->events = (exports_configurator_handler_handler_list_event_t){events, from->events.count};

    outcome_out(&from->outcome, &to->outcome);
    OPTION_OUT(to->next, from->next_phase);
    OPTION_OUT(to->data, cfgr_json_text(from->data));
    OPTION_OUT(to->output, cfgr_json_text(from->output));
    OPTION_OUT(to->details, cfgr_json_text(from->details));
    to->progress.is_some = from->progress.message != NULL;
    to->progress.val.percent = from->progress.percent > 100 ? 100 : from->progress.percent;
    to->progress.val.message = text_out(from->progress.message);
    desired_out(from, &to->desired);
}

/* --- What the host calls --- */

void exports_configurator_handler_handler_describe(exports_configurator_handler_handler_module_description_t *to) {
    cfgr_check_handlers();
    exports_configurator_handler_handler_handler_description_t *items = cfgr_alloc_items(cfgr_handler_count, sizeof *items);
    for (size_t i = 0; i < cfgr_handler_count; i++) {
        const cfgr_handler *handler = &cfgr_handlers[i];
        items[i].name = text_out(handler->name);
        items[i].description = text_out(handler->description);
        items[i].view = (uint8_t)handler->view;
        items[i].accepts = (uint8_t)handler->accepts;
        OPTION_OUT(items[i].parameters_schema, handler->parameters_schema);
        OPTION_OUT(items[i].capabilities, handler->capabilities);
    }
    to->handlers = (exports_configurator_handler_handler_list_handler_description_t){items, cfgr_handler_count};
}

bool exports_configurator_handler_handler_handle(configurator_string_t *handler,
                                                 exports_configurator_handler_handler_handler_input_t *from,
                                                 exports_configurator_handler_handler_handler_output_t *to,
                                                 exports_configurator_handler_handler_handler_error_t *error) {
    cfgr_input input = input_in(from);
    cfgr_output output = {0};
    const cfgr_error *failure = cfgr_call(text_in(*handler), &input, &output);
    if (failure != NULL) {
        *error = error_out(failure);
        return false;
    }
    memset(to, 0, sizeof *to);
    output_out(&output, to);
    return true;
}

/* --- What a handler calls --- */

void cfgr_log_line(cfgr_log_level level, const char *message, const cfgr_log_field *fields) {
    /* Without the memory of the call, which may be what is out. More fields than this are left out. */
    configurator_tuple2_string_string_t items[32];
    size_t count = 0;
    for (; fields[count].key != NULL && count < sizeof items / sizeof *items; count++) {
        items[count] = (configurator_tuple2_string_string_t){text_out(fields[count].key), text_out(fields[count].value)};
    }
    configurator_string_t line = text_out(message);
    configurator_list_tuple2_string_string_t list = {items, count};
    configurator_handler_log_log((uint8_t)level, &line, &list);
}
