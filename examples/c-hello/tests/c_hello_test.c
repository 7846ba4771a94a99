/* The handler is called like any function. */
#include <configurator_test.h>

static void a_namespace_gets_its_config_map(void) {
    cfgr_input input = cfgr_test_input(cfgr_test_json("{'metadata': {'name': 'shop'}}"));
    cfgr_output output = {0};
    CFGR_EXPECT(cfgr_call("root", &input, &output) == NULL);
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output),
                     "hello: kubernetes apply configmaps shop/hello "
                     "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"shop\",\"name\":\"hello\"},"
                     "\"data\":{\"greeting\":\"hello, shop\"}}\n");
}

static void an_object_without_a_name_is_refused(void) {
    cfgr_input input = cfgr_test_input(cfgr_test_json("{}"));
    cfgr_output output = {0};
    const cfgr_error *error = cfgr_call("root", &input, &output);
    CFGR_EXPECT(error != NULL && error->fatal);
}

int main(void) {
    a_namespace_gets_its_config_map();
    an_object_without_a_name_is_refused();
    return cfgr_test_end();
}
