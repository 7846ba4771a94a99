#include <string.h>

#include "configurator_test.h"
#include "tests.h"

static void the_defaults_are_left_to_the_host(void) {
    cfgr_output output = {0};
    CFGR_EXPECT(output.execute_strategy == CFGR_EXECUTE_UNSAID && output.batch_error_strategy == CFGR_BATCH_UNSAID);
    CFGR_EXPECT(output.outcome.kind == CFGR_DONE && cfgr_is_absent(output.data) && output.progress.message == NULL);
    CFGR_EXPECT(!output.desired.is_said && output.reads.count == 0 && output.remove_from_plan.count == 0);
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output), "");
}

static void a_failed_output_keeps_everything_but_its_requests(void) {
    cfgr_output output = {.progress = {50, "half"}};
    cfgr_output_request(&output, "a", cfgr_basic_get("k"));
    cfgr_output_event(&output, CFGR_EVENT_WARNING, "Slow", "it took long");
    cfgr_output_failed(&output, cfgr_retry("not yet", .retry_after_ms = 30000, .code = "QUOTA"));
    CFGR_EXPECT(output.requests.count == 0 && output.events.count == 1 && output.outcome.kind == CFGR_FAILED);
    CFGR_EXPECT(!output.outcome.error->fatal && output.outcome.error->retry_after_ms == 30000);
    CFGR_EXPECT_TEXT(output.outcome.error->code, "QUOTA");
    CFGR_EXPECT(cfgr_fatal("no")->fatal && cfgr_fatal("no")->code == NULL);
}

static void what_is_passed_on_is_found_again(void) {
    cfgr_output output = {0};
    cfgr_output_pass(&output, "count", cfgr_integer(3));
    cfgr_output_pass(&output, "nothing", cfgr_get(cfgr_null(), "no"));
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output), "pass count = 3\npass nothing = null\n");
    cfgr_input input = cfgr_test_input(CFGR_OBJECT());
    cfgr_test_add_arguments_of(&input, &output);
    CFGR_EXPECT_TEXT(cfgr_input_find_argument(&input, "count"), "3");
}

static void statuses_and_events_name_their_object(void) {
    cfgr_output output = {0};
    char name[] = "web";
    cfgr_output_status(&output, CFGR_OBJECT({"ready", cfgr_bool(true)}));
    cfgr_output_status(&output, CFGR_OBJECT(), .of = {"shop", name});
    cfgr_output_event(&output, CFGR_EVENT_NORMAL, "Seen", name, .of = {"shop", name});
    strcpy(name, "no");
    CFGR_EXPECT(output.statuses.items[0].of.name == NULL);
    CFGR_EXPECT_TEXT(output.statuses.items[0].status, "{\"ready\":true}");
    CFGR_EXPECT_TEXT(output.statuses.items[1].of.name, "web");
    CFGR_EXPECT_TEXT(output.events.items[0].of.namespace, "shop");
    CFGR_EXPECT_TEXT(output.events.items[0].message, "web");
}

static void a_leaf_is_entered_again_or_waits(void) {
    cfgr_output output = {0};
    cfgr_output_again(&output);
    CFGR_EXPECT(output.outcome.kind == CFGR_AGAIN && output.outcome.again_after_ms == 0);
    cfgr_output_again_after(&output, 5000);
    CFGR_EXPECT(output.outcome.again_after_ms == 5000);
    cfgr_output_wait(&output, .after_ms = 60000, .signals = CFGR_NAMES("go", "stop"),
                     .objects = CFGR_OBJECT_KEYS(cfgr_key(CFGR_DEPLOYMENT, "shop", "web")));
    CFGR_EXPECT(output.outcome.kind == CFGR_WAIT && output.outcome.wake.signals.count == 2);
    CFGR_EXPECT_TEXT(output.outcome.wake.signals.items[1], "stop");
    CFGR_EXPECT_TEXT(output.outcome.wake.objects.items[0].group, "apps");
    cfgr_output_wait(&output);
    CFGR_EXPECT(output.outcome.wake.after_ms == 0 && output.outcome.wake.objects.count == 0);
    cfgr_output_stop(&output);
    CFGR_EXPECT(output.outcome.kind == CFGR_STOP);
}

void test_outputs(void) {
    the_defaults_are_left_to_the_host();
    a_failed_output_keeps_everything_but_its_requests();
    what_is_passed_on_is_found_again();
    statuses_and_events_name_their_object();
    a_leaf_is_entered_again_or_waits();
}
