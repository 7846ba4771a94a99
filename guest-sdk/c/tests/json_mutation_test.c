/* Documents with mistakes in them, by chance: none may crash the parser, and what it takes, it takes again when it has written it. */
#include <stdio.h>
#include <string.h>

#include "configurator_test.h"
#include "tests.h"

static uint64_t state = 42;

static uint64_t chance(uint64_t below) {
    state += 0x9e3779b97f4a7c15;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % below;
}

static bool is_same(cfgr_json one, cfgr_json other) {
    if (one.type != other.type || one.count != other.count) {
        return false;
    }
    for (size_t i = 0; i < one.count; i++) {
        bool is_object = one.type == CFGR_TYPE_OBJECT;
        if (is_object && !cfgr_equal(one.members[i].key, other.members[i].key)) {
            return false;
        }
        if (!is_same(is_object ? one.members[i].value : one.items[i], is_object ? other.members[i].value : other.items[i])) {
            return false;
        }
    }
    switch (one.type) {
    case CFGR_TYPE_STRING:
        return cfgr_equal(one.string, other.string);
    case CFGR_TYPE_BOOL:
        return one.is_true == other.is_true;
    default:
        return true;
    }
}

void test_json_mutations(void) {
    static const char *const seeds[] = {
        "{\"metadata\": {\"name\": \"web\", \"labels\": {}, \"list\": [1, -2.5e10, true, false, null]}}",
        "[\"\\u00e9\\ud834\\udd1e\\n\\\\\", \"plain text of some length\", [[[[]]]], {\"\": \"\\u0000\"}]",
    };
    static const char bytes[] = "{}[]\",:\\u0dD8aeE+-. \n\ttrufalsn";
    int taken = 0;
    for (int round = 0; round < 20000; round++) {
        char text[160];
        const char *seed = seeds[round % 2];
        size_t size = strlen(seed);
        memcpy(text, seed, size + 1);
        for (uint64_t changes = chance(4); changes > 0 && size > 1; changes--) {
            size_t at = chance(size);
            switch (chance(3)) {
            case 0:
                text[at] = bytes[chance(sizeof bytes - 1)];
                break;
            case 1:
                memmove(text + at, text + at + 1, size - at);
                size--;
                break;
            default:
                size = at + 1;
                text[size] = '\0';
            }
        }
        cfgr_json value = cfgr_parse(text);
        if (!cfgr_is_absent(value)) {
            taken++;
            CFGR_EXPECT(is_same(value, cfgr_parse(cfgr_json_text(value))));
        }
        cfgr_free_all();
    }
    CFGR_EXPECT(taken > 5000 && taken < 15000);
}
