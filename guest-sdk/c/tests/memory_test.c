#include <string.h>

#include "configurator_test.h"
#include "internal.h"
#include "tests.h"

void test_memory(void) {
    unsigned char *block = cfgr_alloc(100);
    for (size_t i = 0; i < 100; i++) {
        CFGR_EXPECT(block[i] == 0);
    }
    CFGR_EXPECT((uintptr_t)block % _Alignof(max_align_t) == 0);
    CFGR_EXPECT(cfgr_alloc(0) != NULL && cfgr_alloc_items(0, 8) != NULL);

    /* One that is not the newest grows as well. */
    char *first = cfgr_resize(NULL, 0, 4);
    memcpy(first, "abc", 4);
    cfgr_alloc(1);
    first = cfgr_resize(first, 4, 4000);
    CFGR_EXPECT_TEXT(first, "abc");

    cfgr_items items = {0};
    for (int i = 0; i < 1000; i++) {
        cfgr_items_add(&items, cfgr_integer(i));
    }
    int64_t last = 0;
    CFGR_EXPECT(cfgr_as_int64(cfgr_item(cfgr_array(&items), 999), &last) && last == 999);

    cfgr_free_all();
    CFGR_EXPECT_TEXT(cfgr_copy("again"), "again");
}
