#include "configurator/http.h"

#include <string.h>

#include "configurator/memory.h"
#include "configurator/text.h"

cfgr_http_request cfgr_http_with(const char *method, const char *url, cfgr_http_options options) {
    cfgr_header *headers = cfgr_alloc_items(options.headers.count, sizeof *headers);
    for (size_t i = 0; i < options.headers.count; i++) {
        headers[i].name = cfgr_copy(options.headers.items[i].name);
        headers[i].value = cfgr_copy(options.headers.items[i].value);
    }
    cfgr_http_request request = {
        .method = cfgr_copy(method),
        .url = cfgr_copy(url),
        .headers = {headers, options.headers.count},
    };
    if (options.body != NULL) {
        request.body = cfgr_copy(options.body);
        request.body_size = strlen(options.body);
    } else if (options.bytes != NULL) {
        request.body = cfgr_copy_bytes(options.bytes, options.size);
        request.body_size = options.size;
    }
    return request;
}
