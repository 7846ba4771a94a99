#include "configurator/extension.h"

#include "configurator/text.h"

cfgr_extension cfgr_extension_request(const char *extension, const char *verb, const char *target) {
    return (cfgr_extension){.extension = cfgr_copy(extension), .verb = cfgr_copy(verb), .target = cfgr_copy(target)};
}

cfgr_extension cfgr_extension_request_with(const char *extension, const char *verb, const char *target, cfgr_json body) {
    cfgr_extension request = cfgr_extension_request(extension, verb, target);
    request.body = cfgr_json_text(body);
    return request;
}
