/* An output in lines, for tests. A request has one line: name, operation, target, body, and the options that differ from the defaults. */
#ifndef __wasm__

#include "test_lines.h"

#include "configurator_test.h"

void cfgr_line_text(cfgr_buffer *line, const char *before, const char *text, const char *after) {
    if (text != NULL) {
        cfgr_buffer_text(line, before);
        cfgr_buffer_text(line, text);
        cfgr_buffer_text(line, after);
    }
}

static void flag(cfgr_buffer *line, bool is_set, const char *name) {
    cfgr_line_text(line, ", ", is_set ? name : NULL, "");
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
    cfgr_line_text(line, "kubernetes ", kubernetes_verb(request), " ");
    cfgr_buffer_text(line, request->resource.plural);
    cfgr_line_text(line, ".", some(request->resource.group), "");
    cfgr_line_text(line, "/", request->subresource, "");
    if (some(request->namespace) != NULL || some(request->name) != NULL) {
        cfgr_buffer_text(line, " ");
        cfgr_line_text(line, "", some(request->namespace), "/");
        cfgr_buffer_text(line, request->name);
    }
    cfgr_line_text(line, " ", request->body, "");
    cfgr_line_text(line, ", fields ", request->field_selector, "");
    cfgr_line_text(line, ", labels ", request->label_selector, "");
    flag(line, request->cached, "cached");
    flag(line, request->force, "forced");
    flag(line, request->must_not_exist, "no precheck");
    cfgr_line_text(line, ", propagation ", propagation[request->propagation], "");
    cfgr_line_text(line, ", uid ", request->uid, "");
    cfgr_line_text(line, ", resource-version ", request->resource_version, "");
}

void cfgr_line_entry(cfgr_buffer *line, const cfgr_entry *entry) {
    static const char *const types[] = {"pod", "node", "namespace", "workload"};
    cfgr_line_text(line, "", types[entry->type], " ");
    cfgr_line_text(line, "", entry->namespace, "/");
    cfgr_line_text(line, "", entry->workload_kind, "/");
    cfgr_buffer_text(line, entry->name);
    cfgr_line_text(line, " (", entry->uid, ")");
}

void cfgr_line_app_conf(cfgr_buffer *line, const cfgr_app_conf *key) {
    cfgr_buffer_text(line, "app-conf ");
    cfgr_line_text(line, "", key->namespace, "/");
    cfgr_line_text(line, "", key->pod, " ");
    cfgr_buffer_text(line, key->key);
}

void cfgr_line_basic(cfgr_buffer *line, const char *key) {
    cfgr_line_text(line, "basic ", key, "");
}

void cfgr_line_two_layers(cfgr_buffer *line, const cfgr_two_layers *leaf) {
    cfgr_line_text(line, "two-layers ", leaf->second, " ");
    cfgr_buffer_text(line, leaf->third);
}

static void config(cfgr_buffer *line, const cfgr_config *request) {
    static const char *const verbs[] = {"get", "create", "update", "delete"};
    bool is_put = request->kind == CFGR_CONFIG_BASIC && request->verb == CFGR_CONFIG_UPDATE;
    cfgr_line_text(line, "config ", is_put ? "put" : verbs[request->verb], " ");
    switch (request->kind) {
    case CFGR_CONFIG_ENTRY:
        cfgr_line_entry(line, &request->entry);
        break;
    case CFGR_CONFIG_APP_CONF:
        cfgr_line_app_conf(line, &request->app_conf);
        break;
    case CFGR_CONFIG_BASIC:
        cfgr_line_basic(line, request->basic);
        break;
    case CFGR_CONFIG_TWO_LAYERS:
        cfgr_line_two_layers(line, &request->two_layers);
        break;
    }
    cfgr_line_text(line, " = ", request->value, "");
}

static void secret(cfgr_buffer *line, const cfgr_secret *request) {
    static const char *const verbs[] = {"get", "create", "update", "delete"};
    cfgr_line_text(line, "secret ", verbs[request->verb], " ");
    cfgr_buffer_text(line, request->name);
    cfgr_line_text(line, "", request->value == NULL ? NULL : " = (a value)", "");
    if (request->verb == CFGR_SECRET_UPDATE) {
        cfgr_line_text(line, ", version ", cfgr_decimal_unsigned(request->version), "");
    }
}

static void extension(cfgr_buffer *line, const cfgr_extension *request) {
    cfgr_line_text(line, "extension ", request->extension, " ");
    cfgr_line_text(line, "", request->verb, " ");
    cfgr_buffer_text(line, request->target);
    cfgr_line_text(line, " ", request->body, "");
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
        cfgr_line_text(line, "http ", operation->http.method, " ");
        cfgr_buffer_text(line, operation->http.url);
        break;
    case CFGR_OPERATION_EXTENSION:
        extension(line, &operation->extension);
        break;
    }
}

void cfgr_line_names(cfgr_buffer *line, const char *before, cfgr_names names) {
    for (size_t i = 0; i < names.count; i++) {
        cfgr_line_text(line, before, names.items[i], "");
    }
}

void cfgr_line_readiness(cfgr_buffer *line, cfgr_readiness ready_when) {
    const char *const names[] = {NULL, "exists", "observed", "healthy", ready_when.expression};
    cfgr_line_text(line, ", ready-when ", names[ready_when.kind], "");
}

void cfgr_line_timeout(cfgr_buffer *line, uint64_t timeout_ms) {
    if (timeout_ms != 0) {
        cfgr_line_text(line, ", timeout ", cfgr_decimal_unsigned(timeout_ms), " ms");
    }
}

void cfgr_line_request(cfgr_buffer *line, const cfgr_request *request) {
    static const char *const on_error[] = {NULL, "fail", "catch-error", "drop-error"};
    cfgr_line_text(line, "", request->name, ": ");
    operation(line, &request->operation);
    cfgr_line_text(line, ", group-by ", request->group_by, "");
    if (request->of.name != NULL) {
        cfgr_line_text(line, ", of ", request->of.namespace == NULL ? "" : request->of.namespace, "/");
        cfgr_buffer_text(line, request->of.name);
    }
    cfgr_line_text(line, ", on-error ", on_error[request->on_error], "");
    cfgr_line_names(line, ", depends-on ", request->depends_on);
    cfgr_line_readiness(line, request->ready_when);
    cfgr_line_timeout(line, request->timeout_ms);
    cfgr_line_text(line, ", partition ", request->partition, "");
    flag(line, request->is_declarative, "declarative");
    flag(line, request->bootstrap_dep, "bootstrap-dep");
    flag(line, request->once, "once");
    cfgr_buffer_byte(line, '\n');
}

const char *cfgr_test_lines(const cfgr_output *output) {
    cfgr_buffer lines = {0};
    for (size_t i = 0; i < output->requests.count; i++) {
        cfgr_line_request(&lines, &output->requests.items[i]);
    }
    for (size_t i = 0; i < output->reads.count; i++) {
        cfgr_buffer_text(&lines, "read ");
        cfgr_line_request(&lines, &output->reads.items[i]);
    }
    cfgr_lines_desired(&lines, &output->desired);
    for (size_t i = 0; i < output->remove_from_plan.count; i++) {
        cfgr_line_text(&lines, "remove-from-plan ", output->remove_from_plan.items[i], "\n");
    }
    for (size_t i = 0; i < output->arguments.count; i++) {
        cfgr_line_text(&lines, "pass ", output->arguments.items[i].name, " = ");
        cfgr_line_text(&lines, "", output->arguments.items[i].text, "\n");
    }
    return cfgr_buffer_end(&lines);
}

#endif
