#include "configurator_test.h"
#include "tests.h"

int main(void) {
    test_texts();
    test_memory();
    test_json();
    test_json_numbers();
    test_json_mutations();
    test_requests();
    test_results();
    test_inputs();
    test_outputs();
    test_desired();
    test_desired_lines();
    test_plans();
    test_handlers();
    return cfgr_test_end();
}
