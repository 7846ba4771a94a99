/* Requests. */
#include "component.h"

/* --- From the host --- */

cfgr_headers cfgr_headers_in(configurator_list_tuple2_string_string_t list) {
    cfgr_header *items = cfgr_alloc_items(list.len, sizeof *items);
    for (size_t i = 0; i < list.len; i++) {
        items[i] = (cfgr_header){cfgr_text_in(list.ptr[i].f0), cfgr_text_in(list.ptr[i].f1)};
    }
    return (cfgr_headers){items, list.len};
}

static cfgr_object_ref ref_in(const configurator_handler_types_object_ref_t *from) {
    return (cfgr_object_ref){cfgr_text_in(from->namespace_), cfgr_text_in(from->name)};
}

cfgr_readiness cfgr_readiness_in(const configurator_handler_requests_readiness_t *from) {
    cfgr_readiness to = {.kind = (cfgr_readiness_kind)(from->tag + 1)};
    if (to.kind == CFGR_READINESS_EXPRESSION) {
        to.expression = cfgr_text_in(from->val.expression);
    }
    return to;
}

static cfgr_kubernetes kubernetes_in(const configurator_handler_requests_kubernetes_resource_request_t *from) {
    cfgr_kubernetes to = {
        .verb = (cfgr_verb)from->verb,
        .resource =
            {
                .group = cfgr_text_in(from->group),
                .version = cfgr_text_in(from->version),
                .plural = cfgr_text_in(from->plural),
                .kind = cfgr_text_in(from->kind),
            },
        .namespace = cfgr_text_in(from->namespace_),
        .name = cfgr_text_in(from->name),
        .body = DOCUMENT_IN(from->resource_body),
        .subresource = TEXT_IN(from->subresource),
        .field_selector = TEXT_IN(from->field_selector),
        .label_selector = TEXT_IN(from->label_selector),
        .patch_type = ENUM_IN(from->patch_type),
        .propagation = ENUM_IN(from->propagation_policy),
        .must_not_exist = from->precheck_exist.is_some && !from->precheck_exist.val,
        .force = from->force.is_some && from->force.val,
        .cached = from->cached.is_some && from->cached.val,
    };
    if (from->precondition.is_some) {
        to.uid = TEXT_IN(from->precondition.val.uid);
        to.resource_version = TEXT_IN(from->precondition.val.resource_version);
    }
    return to;
}

static cfgr_secret secret_in(const configurator_handler_requests_secret_request_t *from) {
    return (cfgr_secret){
        .verb = (cfgr_secret_verb)from->verb,
        .name = cfgr_text_in(from->secret_name),
        .value = DOCUMENT_IN(from->value),
        .version = NUMBER_IN(from->version),
    };
}

static cfgr_http_request http_in(const configurator_handler_requests_http_request_t *from) {
    cfgr_http_request to = {
        .method = cfgr_text_in(from->method),
        .url = cfgr_text_in(from->url),
        .headers = cfgr_headers_in(from->headers),
    };
    if (from->body.is_some) {
        to.body = from->body.val.len == 0 ? (const void *)"" : from->body.val.ptr;
        to.body_size = from->body.val.len;
    }
    return to;
}

static cfgr_extension extension_in(const configurator_handler_requests_extension_request_t *from) {
    return (cfgr_extension){
        .extension = cfgr_text_in(from->extension),
        .verb = cfgr_text_in(from->verb),
        .target = cfgr_text_in(from->target),
        .body = DOCUMENT_IN(from->body),
    };
}

static cfgr_operation operation_in(const configurator_handler_requests_operation_t *from) {
    switch (from->tag) {
    case CONFIGURATOR_HANDLER_REQUESTS_OPERATION_KUBERNETES:
        return CFGR_OPERATION(kubernetes_in(&from->val.kubernetes));
    case CONFIGURATOR_HANDLER_REQUESTS_OPERATION_SECRET:
        return CFGR_OPERATION(secret_in(&from->val.secret));
    case CONFIGURATOR_HANDLER_REQUESTS_OPERATION_HTTP:
        return CFGR_OPERATION(http_in(&from->val.http));
    case CONFIGURATOR_HANDLER_REQUESTS_OPERATION_EXTENSION:
        return CFGR_OPERATION(extension_in(&from->val.extension));
    default:
        return cfgr_config_in(from);
    }
}

static cfgr_request request_in(const configurator_handler_requests_resource_request_t *from) {
    return (cfgr_request){
        .name = cfgr_text_in(from->request_name),
        .operation = operation_in(&from->operation),
        .group_by = TEXT_IN(from->group_by),
        .of = from->of.is_some ? ref_in(&from->of.val) : (cfgr_object_ref){0},
        .on_error = ENUM_IN(from->on_error),
        .depends_on = cfgr_names_in(from->depends_on),
        .ready_when = READINESS_IN(from->ready_when),
        .timeout_ms = NUMBER_IN(from->timeout),
        .partition = TEXT_IN(from->partition),
        .is_declarative = from->is_declarative,
        .bootstrap_dep = from->bootstrap_dep,
        .once = from->once,
    };
}

cfgr_requests cfgr_requests_in(const configurator_handler_requests_resource_request_t *from, size_t count) {
    cfgr_request *items = cfgr_alloc_items(count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        items[i] = request_in(&from[i]);
    }
    return (cfgr_requests){items, count, count};
}

/* --- To the host --- */

static configurator_list_tuple2_string_string_t headers_out(cfgr_headers headers) {
    configurator_tuple2_string_string_t *items = cfgr_alloc_items(headers.count, sizeof *items);
    for (size_t i = 0; i < headers.count; i++) {
        items[i] = (configurator_tuple2_string_string_t){cfgr_text_out(headers.items[i].name), cfgr_text_out(headers.items[i].value)};
    }
    return (configurator_list_tuple2_string_string_t){items, headers.count};
}

configurator_handler_types_object_ref_t cfgr_ref_out(cfgr_object_ref from) {
    return (configurator_handler_types_object_ref_t){cfgr_text_out(from.namespace), cfgr_text_out(from.name)};
}

configurator_handler_requests_readiness_t cfgr_readiness_out(cfgr_readiness from) {
    configurator_handler_requests_readiness_t to = {0};
    if (from.kind != CFGR_READINESS_UNSAID) {
        to.tag = (uint8_t)(from.kind - 1);
        to.val.expression = cfgr_text_out(from.expression);
    }
    return to;
}

static configurator_handler_requests_kubernetes_resource_request_t kubernetes_out(const cfgr_kubernetes *from) {
    configurator_handler_requests_kubernetes_resource_request_t to = {
        .group = cfgr_text_out(from->resource.group),
        .version = cfgr_text_out(from->resource.version),
        .plural = cfgr_text_out(from->resource.plural),
        .kind = cfgr_text_out(from->resource.kind),
        .namespace_ = cfgr_text_out(from->namespace),
        .name = cfgr_text_out(from->name),
        .verb = (uint8_t)from->verb,
        .precheck_exist = {.is_some = from->must_not_exist, .val = false},
        .force = {.is_some = from->force, .val = true},
        .cached = {.is_some = from->cached, .val = true},
    };
    TEXT_OUT(to.subresource, from->subresource);
    TEXT_OUT(to.field_selector, from->field_selector);
    TEXT_OUT(to.label_selector, from->label_selector);
    TEXT_OUT(to.resource_body, from->body);
    ENUM_OUT(to.patch_type, from->patch_type);
    ENUM_OUT(to.propagation_policy, from->propagation);
    to.precondition.is_some = from->uid != NULL || from->resource_version != NULL;
    TEXT_OUT(to.precondition.val.uid, from->uid);
    TEXT_OUT(to.precondition.val.resource_version, from->resource_version);
    return to;
}

static void secret_out(const cfgr_secret *from, configurator_handler_requests_operation_t *to) {
    to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_SECRET;
    to->val.secret.secret_name = cfgr_text_out(from->name);
    to->val.secret.verb = (uint8_t)from->verb;
    TEXT_OUT(to->val.secret.value, from->value);
    to->val.secret.version = (configurator_option_u64_t){from->verb == CFGR_SECRET_UPDATE, from->version};
}

static void http_out(const cfgr_http_request *from, configurator_handler_requests_operation_t *to) {
    to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_HTTP;
    to->val.http.method = cfgr_text_out(from->method);
    to->val.http.url = cfgr_text_out(from->url);
    to->val.http.headers = headers_out(from->headers);
    to->val.http.body.is_some = from->body != NULL;
    to->val.http.body.val = (configurator_list_u8_t){(uint8_t *)from->body, from->body_size};
}

static void extension_out(const cfgr_extension *from, configurator_handler_requests_operation_t *to) {
    to->tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_EXTENSION;
    to->val.extension.extension = cfgr_text_out(from->extension);
    to->val.extension.verb = cfgr_text_out(from->verb);
    to->val.extension.target = cfgr_text_out(from->target);
    TEXT_OUT(to->val.extension.body, from->body);
}

static void request_out(const cfgr_request *from, configurator_handler_requests_resource_request_t *to) {
    to->request_name = cfgr_text_out(from->name);
    to->is_declarative = from->is_declarative;
    TEXT_OUT(to->group_by, from->group_by);
    to->bootstrap_dep = from->bootstrap_dep;
    REF_OUT(to->of, from->of);
    ENUM_OUT(to->on_error, from->on_error);
    to->depends_on = cfgr_names_out(from->depends_on);
    READINESS_OUT(to->ready_when, from->ready_when);
    to->once = from->once;
    NUMBER_OUT(to->timeout, from->timeout_ms);
    TEXT_OUT(to->partition, from->partition);
    switch (from->operation.kind) {
    case CFGR_OPERATION_KUBERNETES:
        to->operation.tag = CONFIGURATOR_HANDLER_REQUESTS_OPERATION_KUBERNETES;
        to->operation.val.kubernetes = kubernetes_out(&from->operation.kubernetes);
        break;
    case CFGR_OPERATION_CONFIG:
        cfgr_config_out(&from->operation.config, &to->operation);
        break;
    case CFGR_OPERATION_TRANSACTION:
        cfgr_transaction_out(&from->operation.transaction, &to->operation);
        break;
    case CFGR_OPERATION_SECRET:
        secret_out(&from->operation.secret, &to->operation);
        break;
    case CFGR_OPERATION_HTTP:
        http_out(&from->operation.http, &to->operation);
        break;
    case CFGR_OPERATION_EXTENSION:
        extension_out(&from->operation.extension, &to->operation);
        break;
    }
}

configurator_handler_requests_resource_request_t *cfgr_requests_out(const cfgr_requests *from) {
    configurator_handler_requests_resource_request_t *items = cfgr_alloc_items(from->count, sizeof *items);
    for (size_t i = 0; i < from->count; i++) {
        request_out(&from->items[i], &items[i]);
    }
    return items;
}
