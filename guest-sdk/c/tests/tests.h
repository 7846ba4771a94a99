/* The SDK's tests: one function a file. */
#ifndef TESTS_H
#define TESTS_H

void test_json(void);
void test_json_numbers(void);
void test_json_mutations(void);
void test_texts(void);
void test_memory(void);
void test_requests(void);
void test_results(void);
void test_inputs(void);
void test_outputs(void);
void test_desired(void);
void test_desired_lines(void);
void test_plans(void);
void test_handlers(void);

#endif
