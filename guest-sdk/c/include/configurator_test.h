/*
 * What tests of handlers need: inputs as the host makes them, and a readable form of outputs. It is not part of a module.
 *
 *     int main(void) {
 *         cfgr_input input = cfgr_test_input(cfgr_test_json("{'metadata': {'name': 'shop'}}"));
 *         cfgr_output output = {0};
 *         CFGR_EXPECT(cfgr_call("root", &input, &output) == NULL);
 *         CFGR_EXPECT_TEXT(cfgr_test_lines(&output), "node: kubernetes get nodes worker-1, cached\n");
 *         return cfgr_test_end();
 *     }
 */
#ifndef CONFIGURATOR_TEST_H
#define CONFIGURATOR_TEST_H

#include "configurator_sdk.h"

/* --- Inputs --- */

/* The document of a text in which `'` stands for `"`. The test ends where it is none. */
cfgr_json cfgr_test_json(const char *text);

/* The root phase of this object: modified, first entry, first attempt, at the start of 2026. Its fields are open for what follows. */
cfgr_input cfgr_test_input(cfgr_json object);

/* The same of a batch: the items of an array. */
cfgr_input cfgr_test_batch(cfgr_json objects);

/* Why the object, or each of the batch, is in the run. */
void cfgr_test_event(cfgr_input *input, cfgr_watch_event event);

/* A result of the previous phase, under the name of its request. */
void cfgr_test_add_result(cfgr_input *input, cfgr_result result);

/* Results of the previous phase that share a `group_by`. */
#define cfgr_test_add_group(input, group_by, ...)                                \
    cfgr_test_add_group_of((input), (group_by), (const cfgr_result[]){__VA_ARGS__}, \
                           sizeof((const cfgr_result[]){__VA_ARGS__}) / sizeof(cfgr_result))

/* What the previous phase passed on under a key. */
void cfgr_test_add_argument(cfgr_input *input, const char *key, cfgr_json value);

/* Everything that the output of the previous phase passed on. */
void cfgr_test_add_arguments_of(cfgr_input *input, const cfgr_output *previous);

/* The Configurator's `spec.parameters`. */
void cfgr_test_parameters(cfgr_input *input, cfgr_json parameters);

/* What this handler finds when it is entered again after `previous`: its notes, and these answers to what it asked for. */
#define cfgr_test_after(input, previous, ...)                                    \
    cfgr_test_after_with((input), (previous), (const cfgr_result[]){__VA_ARGS__}, \
                         sizeof((const cfgr_result[]){__VA_ARGS__}) / sizeof(cfgr_result))

/* What the step at this path has left. */
void cfgr_test_add_output(cfgr_input *input, const char *path, cfgr_json output);

/* --- Results --- */

/* Of a request that succeeded; the objects are the items of an array. */
cfgr_result cfgr_test_answered(const char *request_name, cfgr_sink sink, cfgr_json objects);

/* Of an HTTP request. */
cfgr_result cfgr_test_responded(const char *request_name, uint16_t status, const char *body);

/* Of a request that failed and was caught. */
cfgr_result cfgr_test_failed(const char *request_name, cfgr_sink sink, cfgr_error_kind kind, const char *message);

/* --- Outputs --- */

/* One line for each request and each read, then the set, the names that the plan loses, and the arguments. Not a stable format. */
const char *cfgr_test_lines(const cfgr_output *output);

/* --- Expectations --- */

/* Says where the condition does not hold, and goes on. */
#define CFGR_EXPECT(condition) cfgr_test_expect((condition), #condition, __FILE__, __LINE__)

/* Says where the text is another, and goes on. */
#define CFGR_EXPECT_TEXT(actual, expected) cfgr_test_expect_text((actual), (expected), __FILE__, __LINE__)

/* Frees the memory of the tests and returns the exit code: whether an expectation did not hold. */
int cfgr_test_end(void);

/* What the macros call. */
void cfgr_test_add_group_of(cfgr_input *input, const char *group_by, const cfgr_result *results, size_t count);
void cfgr_test_after_with(cfgr_input *input, const cfgr_output *previous, const cfgr_result *answers, size_t count);
void cfgr_test_expect(bool holds, const char *condition, const char *file, int line);
void cfgr_test_expect_text(const char *actual, const char *expected, const char *file, int line);

#endif
