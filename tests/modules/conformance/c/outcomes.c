/* How a call ends, and what it says beside its requests. */
#include <time.h>
#include <unistd.h>

#include "conformance.h"

const cfgr_error *statuses(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_output_status(output, CFGR_OBJECT({"ready", cfgr_bool(true)}));
    cfgr_output_status(output, CFGR_OBJECT({"count", cfgr_integer(3)}));
    cfgr_output_event(output, CFGR_EVENT_NORMAL, "Configured", "all is well");
    cfgr_output_event(output, CFGR_EVENT_WARNING, "Slow", "it took long");
    return NULL;
}

const cfgr_error *error(const cfgr_input *input, cfgr_output *output) {
    (void)output;
    const char *wanted;
    CFGR_TRY(parameter(input, "error", &wanted));
    if (cfgr_equal(wanted, "after")) {
        return cfgr_retry("no quota", .retry_after_ms = 30000);
    }
    if (cfgr_equal(wanted, "code")) {
        return cfgr_retry("no quota", .code = "QUOTA");
    }
    if (cfgr_equal(wanted, "fatal")) {
        return cfgr_fatal("no such class");
    }
    return cfgr_retry("no quota");
}

const cfgr_error *panic(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    (void)output;
    cfgr_panic("the sky is falling");
}

const cfgr_error *outcome(const cfgr_input *input, cfgr_output *output) {
    const char *wanted;
    CFGR_TRY(parameter(input, "outcome", &wanted));
    if (cfgr_equal(wanted, "again")) {
        cfgr_output_again(output);
    } else if (cfgr_equal(wanted, "again-after")) {
        cfgr_output_again_after(output, 5000);
    } else if (cfgr_equal(wanted, "wait")) {
        cfgr_output_wait(output, .after_ms = 60000, .signals = CFGR_NAMES("go", "stop"),
                         .objects = CFGR_OBJECT_KEYS(cfgr_key(CFGR_POD, "shop", "web"), cfgr_key(CFGR_CONFIG_MAP, "shop", "a")));
    } else if (cfgr_equal(wanted, "wait-forever")) {
        cfgr_output_wait(output);
    } else if (cfgr_equal(wanted, "failed")) {
        cfgr_output_status(output, CFGR_OBJECT({"ready", cfgr_bool(false)}));
        cfgr_output_event(output, CFGR_EVENT_WARNING, "Failed", "no quota");
        output->data = CFGR_ARRAY(cfgr_integer(1));
        output->progress = (cfgr_progress){10, "begun"};
        cfgr_output_failed(output, cfgr_retry("no quota", .code = "QUOTA"));
    } else if (cfgr_equal(wanted, "next")) {
        output->next_phase = "Running";
    } else if (cfgr_equal(wanted, "stop")) {
        cfgr_output_request(output, "one", cfgr_basic_get("key"));
        cfgr_output_stop(output);
    }
    return NULL;
}

const cfgr_error *log_lines(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    (void)output;
    cfgr_log(CFGR_TRACE, "one");
    cfgr_log(CFGR_DEBUG, "two");
    cfgr_log(CFGR_INFO, "three");
    cfgr_log(CFGR_WARN, "four");
    cfgr_log(CFGR_ERROR, "fünf");
    cfgr_log(CFGR_INFO, "six", {"b", "2"}, {"a", "1"});
    return NULL;
}

const cfgr_error *clock_of_language(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    cfgr_output_pass(output, "milliseconds", cfgr_integer((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000));
    return NULL;
}

static uint64_t splitmix(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

const cfgr_error *chance(const cfgr_input *input, cfgr_output *output) {
    uint64_t state = input->context.seed;
    cfgr_items numbers = {0};
    for (int i = 0; i < 3; i++) {
        cfgr_items_add(&numbers, cfgr_string(cfgr_decimal_unsigned(splitmix(&state))));
    }
    cfgr_output_pass(output, "numbers", cfgr_array(&numbers));
    return NULL;
}

const cfgr_error *random_number(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    uint64_t number;
    if (getentropy(&number, sizeof number) != 0) {
        return cfgr_fatal("there is no chance");
    }
    cfgr_output_pass(output, "number", cfgr_string(cfgr_decimal_unsigned(number)));
    return NULL;
}
