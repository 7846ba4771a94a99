/* The phases of a batch, called as the host calls them. */
#include <configurator_test.h>

static cfgr_json deployment(const char *namespace, const char *name) {
    cfgr_json annotations = cfgr_test_json("{'config.configurator.dev/tier': 'gold', 'other': 'x'}");
    cfgr_json metadata = CFGR_OBJECT(
        {"namespace", cfgr_string(namespace)},
        {"name", cfgr_string(name)},
        {"uid", cfgr_string(cfgr_concat("u-", name))},
        {"annotations", annotations});
    cfgr_json containers = cfgr_test_json(
        "[{'name': 'server', 'image': 'registry.example.com/web:1', 'ports': [{'containerPort': 8080}],"
        " 'env': [{'name': 'PORT', 'value': '8080'}, {'name': 'TOKEN', 'value': 'hush'}]}]");
    cfgr_json pod = CFGR_OBJECT({"serviceAccountName", cfgr_string(name)}, {"containers", containers});
    cfgr_json spec = CFGR_OBJECT({"replicas", cfgr_integer(2)}, {"template", CFGR_OBJECT({"spec", pod})});
    return CFGR_OBJECT({"metadata", metadata}, {"spec", spec});
}

static cfgr_result stored(const char *name, const char *value) {
    cfgr_json entry = CFGR_OBJECT({"key", cfgr_string("k")}, {"value", cfgr_string(value)});
    return cfgr_test_answered(cfgr_concat("entry/shop/", name), CFGR_SINK_CONFIGSTORE, CFGR_ARRAY(entry));
}

static cfgr_output call(const char *handler, const cfgr_input *input) {
    cfgr_output output = {0};
    const cfgr_error *error = cfgr_call(handler, input, &output);
    CFGR_EXPECT_TEXT(error == NULL ? NULL : error->message, NULL);
    return output;
}

static void root_asks_for_each_namespace_once(void) {
    cfgr_input input = cfgr_test_batch(CFGR_ARRAY(deployment("shop", "web"), deployment("shop", "cart"), deployment("ads", "web")));
    cfgr_output output = call("root", &input);
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output),
                     "namespace/ads: kubernetes get namespaces ads, cached, group-by namespaces\n"
                     "namespace/shop: kubernetes get namespaces shop, cached, group-by namespaces\n"
                     "entry/shop/web: config get workload shop/Deployment/web (u-web), group-by entries, of shop/web\n"
                     "entry/shop/cart: config get workload shop/Deployment/cart (u-cart), group-by entries, of shop/cart\n"
                     "entry/ads/web: config get workload ads/Deployment/web (u-web), group-by entries, of ads/web\n");
}

static void write_summarises_each_deployment_over_its_namespace(void) {
    cfgr_json namespace = cfgr_test_json(
        "{'metadata': {'annotations': {'config.configurator.dev/zone': 'a', 'config.configurator.dev/tier': 'tin'}}}");
    cfgr_input input = cfgr_test_batch(CFGR_ARRAY(deployment("shop", "web")));
    cfgr_test_add_group(&input, "namespaces", cfgr_test_answered("namespace/shop", CFGR_SINK_KUBERNETES, CFGR_ARRAY(namespace)));
    cfgr_test_add_group(&input, "entries",
                        cfgr_test_failed("entry/shop/web", CFGR_SINK_CONFIGSTORE, CFGR_RESOURCE_NOT_FOUND, "not found"));
    cfgr_output output = call("write", &input);
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output),
                     "config/shop/web: config update workload shop/Deployment/web (u-web) = "
                     "{\"replicas\":2,\"serviceAccount\":\"web\",\"containers\":[{\"name\":\"server\","
                     "\"image\":\"registry.example.com/web:1\",\"ports\":[8080],\"env\":[\"PORT\",\"TOKEN\"]}],"
                     "\"config\":{\"tier\":\"gold\",\"zone\":\"a\"}}, of shop/web\n");
}

static void only_entries_that_changed_are_written(void) {
    cfgr_json batch = CFGR_ARRAY(deployment("shop", "web"), deployment("shop", "cart"), deployment("shop", "ads"));
    cfgr_input input = cfgr_test_batch(batch);
    cfgr_output first = call("write", &input);
    CFGR_EXPECT(first.requests.count == 3);
    const char *web = first.requests.items[0].operation.config.value;
    const char *ads = first.requests.items[2].operation.config.value;
    cfgr_test_add_group(&input, "entries", stored("web", web), stored("cart", "{}"), stored("ads", ads));
    cfgr_output second = call("write", &input);
    CFGR_EXPECT(second.requests.count == 1);
    CFGR_EXPECT_TEXT(second.requests.items[0].of.name, "cart");
}

static void a_namespace_that_cannot_be_read_is_not_taken_for_absent(void) {
    cfgr_output output = {0};
    cfgr_input input = cfgr_test_batch(CFGR_ARRAY(deployment("shop", "web")));
    cfgr_input other = input;
    cfgr_test_add_group(&input, "namespaces",
                        cfgr_test_failed("namespace/shop", CFGR_SINK_KUBERNETES, CFGR_API_SERVER_UNAVAILABLE, "no answer"));
    const cfgr_error *error = cfgr_call("write", &input, &output);
    CFGR_EXPECT(error != NULL && !error->fatal);
    CFGR_EXPECT_TEXT(error->message, "the request `namespace/shop` failed: no answer");
    cfgr_test_add_group(&other, "namespaces",
                        cfgr_test_failed("namespace/shop", CFGR_SINK_KUBERNETES, CFGR_RESOURCE_NOT_FOUND, "not there"));
    CFGR_EXPECT(call("write", &other).requests.count == 1);
}

static void an_entry_that_cannot_be_read_is_written(void) {
    cfgr_input input = cfgr_test_batch(CFGR_ARRAY(deployment("shop", "web")));
    cfgr_test_add_group(&input, "entries",
                        cfgr_test_failed("entry/shop/web", CFGR_SINK_CONFIGSTORE, CFGR_CONFIGSTORE_UNAVAILABLE, "no answer"));
    CFGR_EXPECT(call("write", &input).requests.count == 1);
}

static void cleanup_needs_nothing_but_the_identity(void) {
    cfgr_input input = cfgr_test_batch(cfgr_test_json("[{'metadata': {'namespace': 'shop', 'name': 'web', 'uid': 'u-web'}}]"));
    cfgr_output output = call("cleanup", &input);
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output),
                     "config/shop/web: config delete workload shop/Deployment/web (u-web), of shop/web\n");
}

static void what_is_none_of_the_api_is_refused(void) {
    cfgr_output output = {0};
    cfgr_input input = cfgr_test_batch(cfgr_test_json("[{'metadata': {'namespace': 'shop', 'name': 'web'}}]"));
    const cfgr_error *error = cfgr_call("root", &input, &output);
    CFGR_EXPECT(error != NULL && error->fatal);
    CFGR_EXPECT_TEXT(error->message, "there is no string at /metadata/uid");
}

int main(void) {
    root_asks_for_each_namespace_once();
    write_summarises_each_deployment_over_its_namespace();
    only_entries_that_changed_are_written();
    a_namespace_that_cannot_be_read_is_not_taken_for_absent();
    an_entry_that_cannot_be_read_is_written();
    cleanup_needs_nothing_but_the_identity();
    what_is_none_of_the_api_is_refused();
    return cfgr_test_end();
}
