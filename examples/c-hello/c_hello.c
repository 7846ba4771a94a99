/* Gives every Namespace a ConfigMap `hello`. */
#include <configurator_sdk.h>

static const cfgr_error *root(const cfgr_input *input, cfgr_output *output) {
    cfgr_json namespace = cfgr_input_object(input);
    const char *name = cfgr_as_string(cfgr_at(namespace, "/metadata/name"));
    if (name == NULL) {
        return cfgr_fatal("the object has no name");
    }
    cfgr_json hello = CFGR_OBJECT(
        {"apiVersion", cfgr_string("v1")},
        {"kind", cfgr_string("ConfigMap")},
        {"metadata", CFGR_OBJECT({"namespace", cfgr_string(name)}, {"name", cfgr_string("hello")})},
        {"data", CFGR_OBJECT({"greeting", cfgr_string(cfgr_concat("hello, ", name))})});
    cfgr_output_request(output, "hello", cfgr_kubernetes_apply(CFGR_CONFIG_MAP, name, "hello", hello));
    return NULL;
}

CFGR_MODULE({"root", root, .description = "Gives a Namespace its ConfigMap."});
