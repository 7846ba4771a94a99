#include "configurator_test.h"
#include "tests.h"

/* The plan that one output makes. */
static cfgr_plan plan_of(const cfgr_output *output) {
    return (cfgr_plan){.requests = output->requests, .desired = output->desired};
}

static void requests_and_entries_of_a_plan_are_added_again(void) {
    cfgr_output earlier = {0};
    cfgr_output_request(&earlier, "read", cfgr_basic_get("k"), .on_error = CFGR_CATCH_ERROR, .partition = "team-a");
    cfgr_output_request(&earlier, "all", CFGR_TRANSACTION(cfgr_basic_put("k", "1"), cfgr_basic_delete("l")));
    cfgr_output_desired_entry(&earlier, "a", CFGR_OBJECT(), .depends_on = CFGR_NAMES("b"), .on_delete = CFGR_ON_DELETE_RETAIN);
    cfgr_output_desired(&earlier, .allow_empty = true, .update = CFGR_GROUPS(CFGR_NAMES("a")));
    cfgr_output_pre_terminate(&earlier, "pod", cfgr_kubernetes_delete(CFGR_POD, "shop", "web"));
    cfgr_plan plan = plan_of(&earlier);
    cfgr_input input = cfgr_test_input(CFGR_OBJECT());
    CFGR_EXPECT(input.plan == NULL);
    input.plan = &plan;

    cfgr_output output = {0};
    for (size_t i = 0; i < input.plan->requests.count; i++) {
        cfgr_request changed = input.plan->requests.items[i];
        changed.timeout_ms = 1500;
        cfgr_output_add_request(&output, changed);
    }
    cfgr_output_add_desired_entry(&output, input.plan->desired.entries.items[0]);
    cfgr_output_add_pre_terminate(&output, input.plan->desired.pre_terminate.items[0]);
    cfgr_output_desired_with(&output, input.plan->desired.options);
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output),
                     "read: config get basic k, on-error catch-error, timeout 1500 ms, partition team-a\n"
                     "all: config transaction\n  config put basic k = 1\n  config delete basic l, timeout 1500 ms\n"
                     "desired a: kubernetes {}, depends-on b, on-delete retain\n"
                     "desired set: allow-empty, update a\n"
                     "pre-terminate pod: kubernetes delete pods shop/web\n");
    CFGR_EXPECT(earlier.requests.items[0].timeout_ms == 0);
    CFGR_EXPECT_TEXT(output.desired.entries.items[0].depends_on.items[0], "b");
    CFGR_EXPECT(output.desired.entries.items[0].on_delete == CFGR_ON_DELETE_RETAIN && output.desired.options.allow_empty);
    CFGR_EXPECT_TEXT(output.desired.options.update.items[0].items[0], "a");
    CFGR_EXPECT_TEXT(output.desired.pre_terminate.items[0].operation.kubernetes.name, "web");
}

static void a_handler_reads_before_it_plans(void) {
    cfgr_output output = {0};
    cfgr_output_read(&output, "class", cfgr_basic_get("class"), .on_error = CFGR_CATCH_ERROR);
    cfgr_output_read(&output, "pods", cfgr_kubernetes_list(CFGR_POD, "shop"));
    CFGR_EXPECT(output.reads.count == 2 && output.requests.count == 0 && output.reads.items[0].on_error == CFGR_CATCH_ERROR);
    CFGR_EXPECT(output.outcome.kind == CFGR_AGAIN && output.outcome.again_after_ms == 0);
}

static void the_plan_loses_what_is_named(void) {
    cfgr_output output = {0};
    char name[] = "old";
    cfgr_output_remove_from_plan(&output, name);
    name[0] = '-';
    cfgr_output_remove_from_plan(&output, "older");
    CFGR_EXPECT(output.remove_from_plan.count == 2);
    CFGR_EXPECT_TEXT(output.remove_from_plan.items[0], "old");
}

void test_plans(void) {
    requests_and_entries_of_a_plan_are_added_again();
    a_handler_reads_before_it_plans();
    the_plan_loses_what_is_named();
}
