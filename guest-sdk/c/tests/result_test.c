#include "configurator_test.h"
#include "tests.h"

static cfgr_result failed(cfgr_error_kind kind) {
    return cfgr_test_failed("node", CFGR_SINK_KUBERNETES, kind, "it said no");
}

static void absence_is_not_a_failure_for_found(void) {
    cfgr_json object = {0};
    cfgr_result result = failed(CFGR_RESOURCE_NOT_FOUND);
    CFGR_EXPECT(cfgr_result_found(&result, &object) == NULL && cfgr_is_absent(object));
    result = cfgr_test_answered("e", CFGR_SINK_CONFIGSTORE, CFGR_ARRAY());
    CFGR_EXPECT(cfgr_result_found(&result, &object) == NULL && cfgr_is_absent(object));
    result = cfgr_test_answered("e", CFGR_SINK_CONFIGSTORE, CFGR_ARRAY(cfgr_integer(1)));
    CFGR_EXPECT(cfgr_result_found(&result, &object) == NULL && object.type == CFGR_TYPE_NUMBER);
}

static void a_failure_is_fatal_unless_a_retry_may_help(void) {
    cfgr_json object = {0};
    cfgr_result result = failed(CFGR_RESOURCE_PERMISSION);
    const cfgr_error *error = cfgr_result_found(&result, &object);
    CFGR_EXPECT(error != NULL && error->fatal);
    CFGR_EXPECT_TEXT(error->message, "the request `node` failed: it said no");
    result = failed(CFGR_API_SERVER_UNAVAILABLE);
    CFGR_EXPECT(!cfgr_result_object(&result, &object)->fatal);
    result = failed(CFGR_RESOURCE_NOT_FOUND);
    CFGR_EXPECT(!cfgr_result_succeeded(&result)->fatal);
    result = cfgr_test_failed("dns", CFGR_SINK_EXTENSION, CFGR_EXTENSION_UNAVAILABLE, "it is down");
    CFGR_EXPECT(!cfgr_result_succeeded(&result)->fatal);
}

static void a_list_may_be_empty_but_an_object_may_not(void) {
    cfgr_json object = {0};
    cfgr_result result = cfgr_test_answered("pods", CFGR_SINK_KUBERNETES, CFGR_ARRAY());
    CFGR_EXPECT(cfgr_result_objects(&result, &object) == NULL && object.type == CFGR_TYPE_ARRAY && object.count == 0);
    CFGR_EXPECT_TEXT(cfgr_result_object(&result, &object)->message, "the result `pods` has no object");
    result = cfgr_test_answered("pods", CFGR_SINK_KUBERNETES, cfgr_test_json("[{'n': 1}, {'n': 2}]"));
    CFGR_EXPECT(cfgr_result_objects(&result, &object) == NULL);
    CFGR_EXPECT_TEXT(cfgr_json_text(object), "[{\"n\": 1},{\"n\": 2}]");
}

static void an_endpoint_answers(void) {
    const cfgr_http_response *response = NULL;
    cfgr_result result = cfgr_test_responded("hook", 404, "{\"a\": 1}");
    CFGR_EXPECT(cfgr_result_response(&result, &response) == NULL && response->status == 404);
    cfgr_json body = {0};
    CFGR_EXPECT(cfgr_response_json(response, &body) == NULL && !cfgr_is_absent(cfgr_get(body, "a")));
    cfgr_http_response with_header = {.headers = CFGR_HEADERS({"content-type", "text/plain"}), .body = "no json"};
    CFGR_EXPECT_TEXT(cfgr_response_header(&with_header, "content-type"), "text/plain");
    CFGR_EXPECT(cfgr_response_header(&with_header, "content") == NULL && cfgr_response_header(&with_header, "content-type-x") == NULL);
    const cfgr_error *error = cfgr_response_json(&with_header, &body);
    CFGR_EXPECT(error->fatal && cfgr_is_absent(body));
    CFGR_EXPECT_TEXT(error->message, "the body of the answer is no JSON");
    result = cfgr_test_answered("pods", CFGR_SINK_KUBERNETES, CFGR_ARRAY());
    CFGR_EXPECT_TEXT(cfgr_result_response(&result, &response)->message, "the result `pods` is none of an HTTP request");
}

void test_results(void) {
    absence_is_not_a_failure_for_found();
    a_failure_is_fatal_unless_a_retry_may_help();
    a_list_may_be_empty_but_an_object_may_not();
    an_endpoint_answers();
}
