#include "configurator_test.h"
#include "tests.h"

static const cfgr_error *nothing(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    (void)output;
    return NULL;
}

static const cfgr_error *refuses(const cfgr_input *input, cfgr_output *output) {
    const char *name;
    (void)output;
    CFGR_TRY(cfgr_need_string(cfgr_input_object(input), "/name", &name));
    return cfgr_retry(cfgr_concat("no ", name));
}

CFGR_MODULE(
    {"root", nothing, .description = "Does nothing."},
    {"write-all", nothing, .description = "Takes a batch.", .accepts = CFGR_ACCEPTS_BATCH, .view = CFGR_VIEW_CHECK_LIST},
    {"either", nothing, .description = "Takes both.", .accepts = CFGR_ACCEPTS_EITHER},
    {"refuses", refuses, .description = "Fails."});

static void a_handler_gets_only_what_it_accepts(void) {
    cfgr_input one = cfgr_test_input(CFGR_OBJECT());
    cfgr_input batch = cfgr_test_batch(CFGR_ARRAY(CFGR_OBJECT(), CFGR_OBJECT()));
    cfgr_output output = {0};
    CFGR_EXPECT(cfgr_call("root", &one, &output) == NULL);
    CFGR_EXPECT(cfgr_call("write-all", &batch, &output) == NULL);
    CFGR_EXPECT(cfgr_call("either", &one, &output) == NULL && cfgr_call("either", &batch, &output) == NULL);
    CFGR_EXPECT_TEXT(cfgr_call("root", &batch, &output)->message,
                     "handler `root` takes one object, and got a batch: remove `chain.batch` from the Configurator");
    CFGR_EXPECT_TEXT(cfgr_call("write-all", &one, &output)->message,
                     "handler `write-all` takes a batch, and got one object: add `chain.batch` to the Configurator");
}

static void an_unknown_name_is_answered_with_the_known_ones(void) {
    cfgr_input input = cfgr_test_input(CFGR_OBJECT());
    cfgr_output output = {0};
    const cfgr_error *error = cfgr_call("rooot", &input, &output);
    CFGR_EXPECT(error != NULL && error->fatal);
    CFGR_EXPECT_TEXT(error->message, "this module has no handler `rooot`; it has: root, write-all, either, refuses");
}

static void an_error_is_handed_on(void) {
    cfgr_output output = {0};
    cfgr_input input = cfgr_test_input(CFGR_OBJECT());
    CFGR_EXPECT_TEXT(cfgr_call("refuses", &input, &output)->message, "there is no string at /name");
    input = cfgr_test_input(cfgr_test_json("{'name': 'web'}"));
    CFGR_EXPECT_TEXT(cfgr_call("refuses", &input, &output)->message, "no web");
}

void test_handlers(void) {
    cfgr_check_handlers();
    CFGR_EXPECT(cfgr_handler_count == 4);
    a_handler_gets_only_what_it_accepts();
    an_unknown_name_is_answered_with_the_known_ones();
    an_error_is_handed_on();
}
