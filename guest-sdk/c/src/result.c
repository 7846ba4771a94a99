#include "configurator/result.h"

#include "configurator/text.h"
#include "internal.h"

const char *cfgr_response_header(const cfgr_http_response *response, const char *name) {
    for (size_t i = 0; i < response->headers.count; i++) {
        if (cfgr_equal(response->headers.items[i].name, name)) {
            return response->headers.items[i].value;
        }
    }
    return NULL;
}

const cfgr_error *cfgr_response_json(const cfgr_http_response *response, cfgr_json *json) {
    *json = cfgr_parse_bytes(response->body, response->body_size);
    return cfgr_is_absent(*json) ? cfgr_fatal("the body of the answer is no JSON") : NULL;
}

const cfgr_error *cfgr_result_succeeded(const cfgr_result *result) {
    if (result->error == NULL) {
        return NULL;
    }
    const char *message = cfgr_concat("the request `", result->request_name, "` failed: ", result->error->message);
    return result->error->retryable ? cfgr_retry(message) : cfgr_fatal(message);
}

const cfgr_error *cfgr_result_object(const cfgr_result *result, cfgr_json *object) {
    *object = (cfgr_json){0};
    CFGR_TRY(cfgr_result_succeeded(result));
    if (result->object_count == 0) {
        return cfgr_fatal(cfgr_concat("the result `", result->request_name, "` has no object"));
    }
    *object = cfgr_parse_kept(result->objects[0]);
    return NULL;
}

const cfgr_error *cfgr_result_objects(const cfgr_result *result, cfgr_json *objects) {
    *objects = (cfgr_json){0};
    CFGR_TRY(cfgr_result_succeeded(result));
    cfgr_items items = {0};
    for (size_t i = 0; i < result->object_count; i++) {
        cfgr_items_add(&items, cfgr_parse_kept(result->objects[i]));
    }
    *objects = cfgr_array(&items);
    return NULL;
}

const cfgr_error *cfgr_result_found(const cfgr_result *result, cfgr_json *object) {
    *object = (cfgr_json){0};
    if (result->error != NULL && result->error->kind == CFGR_RESOURCE_NOT_FOUND) {
        return NULL;
    }
    CFGR_TRY(cfgr_result_succeeded(result));
    if (result->object_count > 0) {
        *object = cfgr_parse_kept(result->objects[0]);
    }
    return NULL;
}

const cfgr_error *cfgr_result_response(const cfgr_result *result, const cfgr_http_response **response) {
    *response = NULL;
    CFGR_TRY(cfgr_result_succeeded(result));
    if (result->response == NULL) {
        return cfgr_fatal(cfgr_concat("the result `", result->request_name, "` is none of an HTTP request"));
    }
    *response = result->response;
    return NULL;
}
