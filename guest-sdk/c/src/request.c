#include "configurator/request.h"

#include "configurator/text.h"

cfgr_readiness cfgr_when_exists(void) {
    return (cfgr_readiness){.kind = CFGR_READINESS_EXISTS};
}

cfgr_readiness cfgr_when_observed(void) {
    return (cfgr_readiness){.kind = CFGR_READINESS_OBSERVED};
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
