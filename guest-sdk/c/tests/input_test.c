#include "configurator_test.h"
#include "tests.h"

static void expect_fatal(const cfgr_error *error, const char *message) {
    CFGR_EXPECT(error != NULL && error->fatal);
    CFGR_EXPECT_TEXT(error->message, message);
}

static cfgr_input input_with_results(void) {
    cfgr_input input = cfgr_test_input(cfgr_test_json("{'metadata': {'name': 'web-1'}}"));
    cfgr_test_add_result(&input, cfgr_test_answered("node", CFGR_SINK_KUBERNETES, cfgr_test_json("[{'kind': 'Node'}]")));
    cfgr_test_add_group(&input, "pods", cfgr_test_answered("pod-1", CFGR_SINK_KUBERNETES, cfgr_test_json("[{'n': 1}]")));
    cfgr_test_add_argument(&input, "layers", cfgr_test_json("['node', 'namespace']"));
    return input;
}

static void results_and_groups_are_found_by_name(void) {
    cfgr_input input = input_with_results();
    const cfgr_result *node = NULL;
    cfgr_results pods = {0};
    cfgr_json value = {0};
    CFGR_EXPECT(cfgr_input_result(&input, "node", &node) == NULL && cfgr_result_object(node, &value) == NULL);
    CFGR_EXPECT_TEXT(cfgr_as_string(cfgr_get(value, "kind")), "Node");
    CFGR_EXPECT(cfgr_input_group(&input, "pods", &pods) == NULL && pods.count == 1);
    CFGR_EXPECT(cfgr_input_argument(&input, "layers", &value) == NULL && value.count == 2);
    CFGR_EXPECT(cfgr_input_find_result(&input, "node") != NULL && cfgr_input_find_group(&input, "pods").count == 1);
    CFGR_EXPECT(cfgr_input_find_result(&input, "pods") == NULL && cfgr_input_find_group(&input, "node").count == 0);
    CFGR_EXPECT_TEXT(cfgr_input_find_argument(&input, "layers"), "[\"node\", \"namespace\"]");
}

static void what_is_missing_is_named_with_what_is_there(void) {
    cfgr_input input = input_with_results();
    cfgr_input empty = cfgr_test_input(CFGR_OBJECT());
    const cfgr_result *result;
    cfgr_results group;
    cfgr_json value = {0};
    expect_fatal(cfgr_input_result(&input, "nod", &result), "no result `nod`: the previous phase left node, pods");
    expect_fatal(cfgr_input_argument(&input, "layer", &value), "no argument `layer`: the previous phase left layers");
    expect_fatal(cfgr_input_result(&empty, "node", &result), "no result `node`: the previous phase left no results");
    expect_fatal(cfgr_input_result(&input, "pods", &result),
                 "`pods` is a group of results, not the result of one request: read it as a group");
    expect_fatal(cfgr_input_group(&input, "node", &group),
                 "`node` is the result of one request, not a group: read it as a result");
    CFGR_EXPECT(cfgr_input_find_argument(&input, "no") == NULL);
}

static void a_leaf_finds_what_it_asked_for_and_noted(void) {
    cfgr_input input = cfgr_test_input(CFGR_OBJECT());
    cfgr_json value = {0};
    CFGR_EXPECT(cfgr_input_answer(&input, "pod") == NULL && cfgr_input_answers(&input, "pods").count == 0);
    CFGR_EXPECT(cfgr_is_absent(cfgr_input_notes(&input)));

    cfgr_output first = {.data = cfgr_test_json("{'tries': 2}")};
    cfgr_test_after(&input, &first, cfgr_test_answered("pod", CFGR_SINK_KUBERNETES, cfgr_test_json("[{'n': 1}]")));
    cfgr_test_add_output(&input, "prepare", cfgr_test_json("{'size': 3}"));
    CFGR_EXPECT(cfgr_result_object(cfgr_input_answer(&input, "pod"), &value) == NULL);
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_get(value, "n")), "1");
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_get(cfgr_input_notes(&input), "tries")), "2");
    CFGR_EXPECT(cfgr_input_output_of(&input, "prepare", &value) == NULL);
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_get(value, "size")), "3");
    expect_fatal(cfgr_input_output_of(&input, "prepar", &value), "no output `prepar`: earlier steps left prepare");
    CFGR_EXPECT(input.context.entry == 2 && input.context.cause.kind == CFGR_CAUSE_AGAIN);
}

static void a_batch_is_a_list_of_objects(void) {
    cfgr_input input = cfgr_test_batch(cfgr_test_json("[1, 2]"));
    cfgr_test_event(&input, CFGR_DELETED);
    CFGR_EXPECT(cfgr_input_event(&input) == CFGR_DELETED);
    CFGR_EXPECT(input.is_batch && input.object_count == 2 && input.objects[1].event == CFGR_DELETED);
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_input_object(&input)), "1");
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_watched_object(&input.objects[1])), "2");
}

static void parameters_are_read(void) {
    cfgr_input input = cfgr_test_input(CFGR_OBJECT());
    CFGR_EXPECT(cfgr_input_parameters(&input).type == CFGR_TYPE_OBJECT);
    cfgr_test_parameters(&input, cfgr_test_json("{'tier': 'gold'}"));
    CFGR_EXPECT_TEXT(cfgr_as_string(cfgr_get(cfgr_input_parameters(&input), "tier")), "gold");
}

void test_inputs(void) {
    results_and_groups_are_found_by_name();
    what_is_missing_is_named_with_what_is_there();
    a_leaf_finds_what_it_asked_for_and_noted();
    a_batch_is_a_list_of_objects();
    parameters_are_read();
}
