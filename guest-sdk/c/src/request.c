#include "configurator/request.h"

#include "configurator/memory.h"
#include "configurator/text.h"
#include "internal.h"

cfgr_readiness cfgr_when_exists(void) {
    return (cfgr_readiness){.kind = CFGR_READINESS_EXISTS};
}

cfgr_readiness cfgr_when_observed(void) {
    return (cfgr_readiness){.kind = CFGR_READINESS_OBSERVED};
}

cfgr_readiness cfgr_when_healthy(void) {
    return (cfgr_readiness){.kind = CFGR_READINESS_HEALTHY};
}

cfgr_readiness cfgr_when(const char *expression) {
    return (cfgr_readiness){.kind = CFGR_READINESS_EXPRESSION, .expression = cfgr_copy(expression)};
}

cfgr_operation cfgr_operation_of_kubernetes(cfgr_kubernetes kubernetes) {
    return (cfgr_operation){.kind = CFGR_OPERATION_KUBERNETES, .kubernetes = kubernetes};
}

cfgr_operation cfgr_operation_of_config(cfgr_config config) {
    return (cfgr_operation){.kind = CFGR_OPERATION_CONFIG, .config = config};
}

cfgr_operation cfgr_operation_of_transaction(cfgr_transaction transaction) {
    return (cfgr_operation){.kind = CFGR_OPERATION_TRANSACTION, .transaction = transaction};
}

cfgr_operation cfgr_operation_of_secret(cfgr_secret secret) {
    return (cfgr_operation){.kind = CFGR_OPERATION_SECRET, .secret = secret};
}

cfgr_operation cfgr_operation_of_http(cfgr_http_request http) {
    return (cfgr_operation){.kind = CFGR_OPERATION_HTTP, .http = http};
}

cfgr_operation cfgr_operation_of_extension(cfgr_extension extension) {
    return (cfgr_operation){.kind = CFGR_OPERATION_EXTENSION, .extension = extension};
}

cfgr_names cfgr_copy_names(cfgr_names names) {
    const char **copies = cfgr_alloc_items(names.count, sizeof *copies);
    for (size_t i = 0; i < names.count; i++) {
        copies[i] = cfgr_copy(names.items[i]);
    }
    return (cfgr_names){copies, names.count};
}

cfgr_object_ref cfgr_copy_ref(cfgr_object_ref of) {
    return (cfgr_object_ref){cfgr_copy(of.namespace), cfgr_copy(of.name)};
}

void cfgr_requests_add(cfgr_requests *requests, cfgr_request request) {
    request.name = cfgr_copy(request.name);
    request.group_by = cfgr_copy(request.group_by);
    request.partition = cfgr_copy(request.partition);
    request.of = cfgr_copy_ref(request.of);
    request.depends_on = cfgr_copy_names(request.depends_on);
    requests->items = cfgr_room(requests->items, requests->count, &requests->capacity, sizeof *requests->items);
    requests->items[requests->count++] = request;
}
