#include <math.h>

#include "configurator_test.h"
#include "tests.h"

static void check_int64(const char *text, bool is_one, int64_t expected) {
    int64_t number = 77;
    CFGR_EXPECT(cfgr_as_int64(cfgr_parse(text), &number) == is_one);
    CFGR_EXPECT(number == (is_one ? expected : 77));
}

static void check_uint64(const char *text, bool is_one, uint64_t expected) {
    uint64_t number = 77;
    CFGR_EXPECT(cfgr_as_uint64(cfgr_parse(text), &number) == is_one);
    CFGR_EXPECT(number == (is_one ? expected : 77));
}

static void integers_have_64_bits(void) {
    check_int64("0", true, 0);
    check_int64("-0", true, 0);
    check_int64("9007199254740993", true, 9007199254740993);
    check_int64("9223372036854775807", true, INT64_MAX);
    check_int64("9223372036854775808", false, 0);
    check_int64("-9223372036854775808", true, INT64_MIN);
    check_int64("-9223372036854775809", false, 0);
    check_int64("1.0", false, 0);
    check_int64("1e2", false, 0);
    check_int64("\"1\"", false, 0);
    check_uint64("18446744073709551615", true, UINT64_MAX);
    check_uint64("18446744073709551616", false, 0);
    check_uint64("99999999999999999999999", false, 0);
    check_uint64("-1", false, 0);
    CFGR_EXPECT_TEXT(cfgr_json_text(CFGR_ARRAY(cfgr_integer(INT64_MIN), cfgr_unsigned(UINT64_MAX))),
                     "[-9223372036854775808,18446744073709551615]");
}

static void check_double(double value, const char *expected) {
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_double(value)), expected);
    double again;
    CFGR_EXPECT(cfgr_as_double(cfgr_parse(expected), &again) && again == value);
}

static void fractions_are_written_shortly_and_exactly(void) {
    check_double(0.1, "0.1");
    check_double(0.5e-9, "5e-10");
    check_double(1.0 / 3, "0.3333333333333333");
    check_double(5e-324, "4.94065645841247e-324");
    check_double(1.7976931348623157e308, "1.7976931348623157e+308");
    check_double(-2, "-2");
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_double(NAN)), "null");
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_double(-INFINITY)), "null");
    double number = 7;
    CFGR_EXPECT(!cfgr_as_double(cfgr_parse("1E400"), &number) && !cfgr_as_double(cfgr_parse("null"), &number) && number == 7);
}

void test_json_numbers(void) {
    integers_have_64_bits();
    fractions_are_written_shortly_and_exactly();
}
