/* A request in one line, for tests: name, operation, target, body, and the options that differ from the defaults. */
#ifndef __wasm__

#include "configurator_test.h"
#include "internal.h"

static void text(cfgr_buffer *line, const char *before, const char *text, const char *after) {
    if (text != NULL) {
        cfgr_buffer_text(line, before);
        cfgr_buffer_text(line, text);
        cfgr_buffer_text(line, after);
    }
}

static void flag(cfgr_buffer *line, bool is_set, const char *name) {
    text(line, ", ", is_set ? name : NULL, "");
}

/* Not where it is empty. */
static const char *some(const char *text) {
    return text == NULL || *text == '\0' ? NULL : text;
}

static const char *kubernetes_verb(const cfgr_kubernetes *request) {
    switch (request->verb) {
    case CFGR_VERB_GET:
        return "get";
    case CFGR_VERB_LIST:
        return "list";
    case CFGR_VERB_PATCH:
        return request->patch_type == CFGR_PATCH_JSON        ? "json-patch"
               : request->patch_type == CFGR_PATCH_STRATEGIC ? "strategic-patch"
                                                             : "patch";
    case CFGR_VERB_DELETE:
        return "delete";
    case CFGR_VERB_CREATE:
        return "create";
    case CFGR_VERB_REPLACE:
        return "replace";
    case CFGR_VERB_APPLY:
        return "apply";
    }
    return "";
}

static void kubernetes(cfgr_buffer *line, const cfgr_kubernetes *request) {
    static const char *const propagation[] = {NULL, "background", "foreground", "orphan"};
    text(line, "kubernetes ", kubernetes_verb(request), " ");
    cfgr_buffer_text(line, request->resource.plural);
    text(line, ".", some(request->resource.group), "");
    text(line, "/", request->subresource, "");
    if (some(request->namespace) != NULL || some(request->name) != NULL) {
        cfgr_buffer_text(line, " ");
        text(line, "", some(request->namespace), "/");
        cfgr_buffer_text(line, request->name);
    }
    text(line, " ", request->body, "");
    text(line, ", fields ", request->field_selector, "");
    text(line, ", labels ", request->label_selector, "");
    flag(line, request->cached, "cached");
    flag(line, request->force, "forced");
    flag(line, request->must_not_exist, "no precheck");
    text(line, ", propagation ", propagation[request->propagation], "");
    text(line, ", uid ", request->uid, "");
    text(line, ", resource-version ", request->resource_version, "");
}

static void config(cfgr_buffer *line, const cfgr_config *request) {
    static const char *const verbs[] = {"get", "create", "update", "delete"};
    static const char *const types[] = {"pod", "node", "namespace", "workload"};
    bool is_put = request->kind == CFGR_CONFIG_BASIC && request->verb == CFGR_CONFIG_UPDATE;
    text(line, "config ", is_put ? "put" : verbs[request->verb], " ");
    switch (request->kind) {
    case CFGR_CONFIG_ENTRY:
        text(line, "", types[request->entry.type], " ");
        text(line, "", request->entry.namespace, "/");
        text(line, "", request->entry.workload_kind, "/");
        cfgr_buffer_text(line, request->entry.name);
        text(line, " (", request->entry.uid, ")");
        break;
    case CFGR_CONFIG_APP_CONF:
        cfgr_buffer_text(line, "app-conf ");
        text(line, "", request->app_conf.namespace, "/");
        text(line, "", request->app_conf.pod, " ");
        cfgr_buffer_text(line, request->app_conf.key);
        break;
    case CFGR_CONFIG_BASIC:
        text(line, "basic ", request->basic, "");
        break;
    case CFGR_CONFIG_TWO_LAYERS:
        text(line, "two-layers ", request->two_layers.second, " ");
        cfgr_buffer_text(line, request->two_layers.third);
        break;
    }
    text(line, " = ", request->value, "");
}

static void secret(cfgr_buffer *line, const cfgr_secret *request) {
    static const char *const verbs[] = {"get", "create", "update", "delete"};
    text(line, "secret ", verbs[request->verb], " ");
    cfgr_buffer_text(line, request->name);
    text(line, "", request->value == NULL ? NULL : " = (a value)", "");
    if (request->verb == CFGR_SECRET_UPDATE) {
        text(line, ", version ", cfgr_decimal_unsigned(request->version), "");
    }
}

static void extension(cfgr_buffer *line, const cfgr_extension *request) {
    text(line, "extension ", request->extension, " ");
    text(line, "", request->verb, " ");
    cfgr_buffer_text(line, request->target);
    text(line, " ", request->body, "");
}

static void operation(cfgr_buffer *line, const cfgr_operation *operation) {
    switch (operation->kind) {
    case CFGR_OPERATION_KUBERNETES:
        kubernetes(line, &operation->kubernetes);
        break;
    case CFGR_OPERATION_CONFIG:
        config(line, &operation->config);
        break;
    case CFGR_OPERATION_TRANSACTION:
        cfgr_buffer_text(line, "config transaction");
        for (size_t i = 0; i < operation->transaction.count; i++) {
            cfgr_buffer_text(line, "\n  ");
            config(line, &operation->transaction.operations[i]);
        }
        break;
    case CFGR_OPERATION_SECRET:
        secret(line, &operation->secret);
        break;
    case CFGR_OPERATION_HTTP:
        text(line, "http ", operation->http.method, " ");
        cfgr_buffer_text(line, operation->http.url);
        break;
    case CFGR_OPERATION_EXTENSION:
        extension(line, &operation->extension);
        break;
    }
}

static void request_line(cfgr_buffer *line, const cfgr_request *request) {
    static const char *const on_error[] = {NULL, "fail", "catch-error", "drop-error"};
    text(line, "", request->name, ": ");
    operation(line, &request->operation);
    text(line, ", group-by ", request->group_by, "");
    if (request->of.name != NULL) {
        text(line, ", of ", request->of.namespace == NULL ? "" : request->of.namespace, "/");
        cfgr_buffer_text(line, request->of.name);
    }
    text(line, ", on-error ", on_error[request->on_error], "");
    for (size_t i = 0; i < request->depends_on.count; i++) {
        text(line, ", depends-on ", request->depends_on.items[i], "");
    }
    if (request->timeout_ms != 0) {
        text(line, ", timeout ", cfgr_decimal_unsigned(request->timeout_ms), " ms");
    }
    text(line, ", partition ", request->partition, "");
    flag(line, request->is_declarative, "declarative");
    flag(line, request->bootstrap_dep, "bootstrap-dep");
    flag(line, request->once, "once");
    cfgr_buffer_byte(line, '\n');
}

const char *cfgr_test_lines(const cfgr_output *output) {
    cfgr_buffer lines = {0};
    for (size_t i = 0; i < output->requests.count; i++) {
        request_line(&lines, &output->requests.items[i]);
    }
    for (size_t i = 0; i < output->arguments.count; i++) {
        text(&lines, "pass ", output->arguments.items[i].name, " = ");
        text(&lines, "", output->arguments.items[i].text, "\n");
    }
    return cfgr_buffer_end(&lines);
}

#endif
