#include <string.h>

#include "configurator_test.h"
#include "internal.h"
#include "tests.h"

/* What is read and written again, value by value. */
static cfgr_json made_anew(cfgr_json value) {
    cfgr_items items = {0};
    cfgr_members members = {0};
    switch (value.type) {
    case CFGR_TYPE_STRING:
        return cfgr_string(value.string);
    case CFGR_TYPE_ARRAY:
        for (size_t i = 0; i < value.count; i++) {
            cfgr_items_add(&items, made_anew(cfgr_item(value, i)));
        }
        return cfgr_array(&items);
    case CFGR_TYPE_OBJECT:
        for (size_t i = 0; i < value.count; i++) {
            cfgr_member member = cfgr_member_at(value, i);
            cfgr_members_add(&members, member.key, made_anew(member.value));
        }
        return cfgr_object(&members);
    default:
        return value;
    }
}

static void check_anew(const char *text, const char *expected) {
    CFGR_EXPECT_TEXT(cfgr_json_text(made_anew(cfgr_parse(text))), expected);
}

static void what_is_read_can_be_asked(void) {
    cfgr_json pod = cfgr_test_json(
        "{'kind': 'Pod', 'spec': {'containers': [{'image': 'web:1'}, {'image': 'log:2', 'ready': true}]},"
        " 'a/b': {'m~n': 1}, '': 'empty', 'twice': 1, 'twice': 2}");
    CFGR_EXPECT(pod.type == CFGR_TYPE_OBJECT && pod.count == 6);
    CFGR_EXPECT_TEXT(cfgr_as_string(cfgr_get(pod, "kind")), "Pod");
    CFGR_EXPECT_TEXT(cfgr_as_string(cfgr_at(pod, "/spec/containers/1/image")), "log:2");
    CFGR_EXPECT(cfgr_at(pod, "/a~1b/m~0n").type == CFGR_TYPE_NUMBER);
    CFGR_EXPECT_TEXT(cfgr_as_string(cfgr_at(pod, "/")), "empty");
    CFGR_EXPECT(cfgr_at(pod, "").type == CFGR_TYPE_OBJECT);
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_get(pod, "twice")), "2");
    bool ready = false;
    CFGR_EXPECT(cfgr_as_bool(cfgr_at(pod, "/spec/containers/1/ready"), &ready) && ready);
    CFGR_EXPECT_TEXT(cfgr_member_at(pod, 1).key, "spec");
    CFGR_EXPECT(cfgr_member_at(pod, 6).key == NULL);

    /* What is not there can be asked as well. */
    const char *nowhere[] = {"/no", "/kind/no", "/spec/containers/2", "/spec/containers/-", "/spec/containers/01x", "/spec/containers/",
                             "kind", "/spec/containers/99999999999999999999"};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        CFGR_EXPECT(cfgr_is_absent(cfgr_at(pod, nowhere[i])));
    }
    cfgr_json absent = cfgr_get(cfgr_item(cfgr_get(pod, "no"), 0), "no");
    CFGR_EXPECT(cfgr_is_absent(absent) && absent.count == 0 && cfgr_as_string(absent) == NULL);
    CFGR_EXPECT_TEXT(cfgr_string_or(absent, "default"), "default");
    CFGR_EXPECT(cfgr_json_text(absent) == NULL);
    ready = true;
    CFGR_EXPECT(!cfgr_as_bool(absent, &ready) && ready);

    const char *name;
    const cfgr_error *error = cfgr_need_string(pod, "/metadata/name", &name);
    CFGR_EXPECT(error != NULL && error->fatal && name == NULL);
    CFGR_EXPECT_TEXT(error->message, "there is no string at /metadata/name");
    CFGR_EXPECT(cfgr_need_string(pod, "/kind", &name) == NULL);
}

static void texts_are_read_and_written(void) {
    check_anew("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\"]", "[\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\"]");
    check_anew("\"\\u00e9 \\u6c49 \\ud834\\udd1e \\u007f é 汉 𝄞\"", "\"é 汉 𝄞 \x7f é 汉 𝄞\"");
    check_anew("{\"a long key with \\\"quotes\\\" in it\": \"and a longer value, \\n of several lines\"}",
               "{\"a long key with \\\"quotes\\\" in it\":\"and a longer value, \\n of several lines\"}");
    /* U+0000 does not end a text, also not in a key. */
    check_anew("{\"a\\u0000b\": \"\\u0000\"}", "{\"a\\u0000b\":\"\\u0000\"}");
    CFGR_EXPECT(cfgr_is_absent(cfgr_get(cfgr_parse("{\"a\\u0000b\": 1}"), "a")));
    CFGR_EXPECT_TEXT(cfgr_as_string(cfgr_parse("\"\\u0000x\"")), "\xc0\x80x");
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_string("\xc0")), "\"\\u0000\"");
    /* Halves of pairs. */
    check_anew("\"\\ud834\"", "\"\xef\xbf\xbd\"");
    check_anew("\"\\udd1e\\ud834x\"", "\"\xef\xbf\xbd\xef\xbf\xbdx\"");
    check_anew("\"\\ud834\\u0041\"", "\"\xef\xbf\xbd" "A\"");
}

static void what_was_read_is_written_as_it_was(void) {
    const char *text = "{ \"b\" : 1.50,\"a\":[ 12345678901234567890123 , \"\\u0061\" ] }";
    cfgr_json value = cfgr_parse(cfgr_concat(" \n\t\r", text, " "));
    CFGR_EXPECT_TEXT(cfgr_json_text(value), text);
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_get(value, "a")), "[ 12345678901234567890123 , \"\\u0061\" ]");
    CFGR_EXPECT_TEXT(cfgr_json_text(CFGR_OBJECT({"of", cfgr_get(value, "b")})), "{\"of\":1.50}");
}

static void what_is_no_json_is_absent(void) {
    const char *wrong[] = {
        "",      " ",     "nul",    "nulll",   "tru",        "falsch",     "{",      "}",       "[1,]",     "[1 2]",  "[,1]",
        "{a:1}", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "{\"a\" 1}", "{1:2}",  "\"",      "\"\\x\"",   "\"\\u12\"",
        "\"\\u12g4\"", "\"a\nb\"", "01", "-", "+1", "1.", ".5", "1e", "1e+", "0x1", "NaN", "1 1", "\"\\", "\"\\u", "[\"a\", \"\\u1", "'a'",
        "\"\\ud834\\u\"", "\"\\ud834\\",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CFGR_EXPECT(cfgr_is_absent(cfgr_parse(wrong[i])));
    }
    CFGR_EXPECT(cfgr_is_absent(cfgr_parse(NULL)));
    CFGR_EXPECT(cfgr_is_absent(cfgr_parse_bytes("\"a\0b\"", 5)) && cfgr_is_absent(cfgr_parse_bytes("1\0", 2)));
    CFGR_EXPECT(!cfgr_is_absent(cfgr_parse_bytes("12x", 2)));

    const char *no_utf8[] = {"\"\xff\"", "\"\xc0\x80\"", "\"\xc3\"", "\"\xe0\x80\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe6\xb1\""};
    for (size_t i = 0; i < sizeof no_utf8 / sizeof *no_utf8; i++) {
        CFGR_EXPECT(cfgr_is_absent(cfgr_parse_bytes(no_utf8[i], strlen(no_utf8[i]))));
    }
    const char *utf8 = "\"é 汉 𝄞 \xf4\x8f\xbf\xbf\"";
    CFGR_EXPECT(!cfgr_is_absent(cfgr_parse_bytes(utf8, strlen(utf8))));
}

static void depth_has_a_limit(void) {
    char deep[2 * (CFGR_MAX_DEPTH + 1) + 1];
    for (size_t levels = CFGR_MAX_DEPTH; levels <= CFGR_MAX_DEPTH + 1; levels++) {
        memset(deep, '[', levels);
        memset(deep + levels, ']', levels);
        deep[2 * levels] = '\0';
        CFGR_EXPECT(cfgr_is_absent(cfgr_parse(deep)) == (levels > CFGR_MAX_DEPTH));
    }
    cfgr_json made = cfgr_null();
    for (size_t i = 0; i < CFGR_MAX_DEPTH; i++) {
        made = CFGR_ARRAY(made);
    }
    CFGR_EXPECT(strlen(cfgr_json_text(made)) == 2 * CFGR_MAX_DEPTH + 4);
}

static void what_is_made_is_written_without_spaces(void) {
    char name[] = "web";
    cfgr_json value = CFGR_OBJECT(
        {"name", cfgr_string(name)},
        {"none", cfgr_get(cfgr_null(), "x")},
        {"null", cfgr_string(NULL)},
        {"list", CFGR_ARRAY(cfgr_integer(-1), cfgr_bool(true), cfgr_get(cfgr_null(), "x"), cfgr_raw("{ }"))},
        {"empty", CFGR_OBJECT()},
        {"nothing", CFGR_ARRAY()});
    strcpy(name, "no");
    CFGR_EXPECT_TEXT(cfgr_json_text(value),
                     "{\"name\":\"web\",\"null\":null,\"list\":[-1,true,null,{ }],\"empty\":{},\"nothing\":[]}");
    CFGR_EXPECT(value.count == 5);
    CFGR_EXPECT_TEXT(cfgr_as_string(cfgr_at(value, "/name")), "web");
    CFGR_EXPECT(cfgr_is_absent(cfgr_raw(NULL)) && cfgr_is_absent(cfgr_get(cfgr_raw("{\"a\":1}"), "a")));
}

static void members_can_be_set_and_sorted(void) {
    cfgr_members members = {0};
    cfgr_members_set(&members, "b", cfgr_integer(1));
    cfgr_members_set(&members, "a", cfgr_integer(2));
    cfgr_members_set(&members, "é", cfgr_integer(3));
    cfgr_members_set(&members, "B", cfgr_integer(4));
    cfgr_members_set(&members, "b", cfgr_integer(5));
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_object(&members)), "{\"b\":5,\"a\":2,\"é\":3,\"B\":4}");
    cfgr_members_sort(&members);
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_object(&members)), "{\"B\":4,\"a\":2,\"b\":5,\"é\":3}");
    cfgr_members_set(&members, "a", (cfgr_json){0});
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_object(&members)), "{\"B\":4,\"b\":5,\"é\":3}");
    cfgr_members none = {0};
    cfgr_members_sort(&none);
    CFGR_EXPECT_TEXT(cfgr_json_text(cfgr_object(&none)), "{}");
}

void test_json(void) {
    what_is_read_can_be_asked();
    texts_are_read_and_written();
    what_was_read_is_written_as_it_was();
    what_is_no_json_is_absent();
    depth_has_a_limit();
    what_is_made_is_written_without_spaces();
    members_can_be_set_and_sorted();
}
