#include <string.h>

#include "configurator_test.h"
#include "internal.h"
#include "tests.h"

void test_texts(void) {
    CFGR_EXPECT_TEXT(cfgr_concat("entry/", "shop", "", "/", "web"), "entry/shop/web");
    CFGR_EXPECT_TEXT(cfgr_concat(""), "");
    CFGR_EXPECT_TEXT(cfgr_format("%s-%03d", "item", 7), "item-007");

    CFGR_EXPECT_TEXT(cfgr_decimal(0), "0");
    CFGR_EXPECT_TEXT(cfgr_decimal(INT64_MIN), "-9223372036854775808");
    CFGR_EXPECT_TEXT(cfgr_decimal_unsigned(UINT64_MAX), "18446744073709551615");

    CFGR_EXPECT(cfgr_equal("a", "a") && cfgr_equal(NULL, NULL));
    CFGR_EXPECT(!cfgr_equal("a", "b") && !cfgr_equal("a", NULL) && !cfgr_equal(NULL, ""));

    CFGR_EXPECT_TEXT(cfgr_after("config/tier", "config/"), "tier");
    CFGR_EXPECT_TEXT(cfgr_after("config/", "config/"), "");
    CFGR_EXPECT(cfgr_after("conf", "config/") == NULL && cfgr_after(NULL, "") == NULL);

    CFGR_EXPECT(cfgr_copy(NULL) == NULL);
    CFGR_EXPECT_TEXT(cfgr_copy_bytes("shops", 4), "shop");
    char name[] = "first";
    const char *copy = cfgr_copy(name);
    strcpy(name, "other");
    CFGR_EXPECT_TEXT(copy, "first");

    const char *text = "0123456789 0123456789\xc0\x80 0123456789";
    CFGR_EXPECT(cfgr_size(text) == strlen(text));
    CFGR_EXPECT(cfgr_before_zero(text, strlen(text)) == 21);
    CFGR_EXPECT(cfgr_before_zero(text, 21) == 21 && cfgr_before_zero("", 0) == 0);
}
