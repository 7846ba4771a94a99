/* Documents: read, made and handed on. */
#include "conformance.h"

/* The value, made anew of what it holds. A number keeps its digits. */
static cfgr_json made_anew(cfgr_json value) {
    cfgr_items items = {0};
    cfgr_members members = {0};
    switch (value.type) {
    case CFGR_TYPE_STRING:
        return cfgr_string(cfgr_as_string(value));
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

const cfgr_error *object(const cfgr_input *input, cfgr_output *output) {
    cfgr_output_pass(output, "read", made_anew(cfgr_input_object(input)));
    cfgr_output_pass(output, "untouched", cfgr_raw(input->objects[0].object));
    return NULL;
}

const cfgr_error *numbers(const cfgr_input *input, cfgr_output *output) {
    cfgr_json given = cfgr_get(cfgr_input_object(input), "numbers");
    int64_t integer = 0;
    double fraction = 0;
    cfgr_as_int64(cfgr_get(given, "integer"), &integer);
    cfgr_as_double(cfgr_get(given, "fraction"), &fraction);
    cfgr_json list = CFGR_ARRAY(cfgr_get(given, "zero"), cfgr_get(given, "integer"), cfgr_get(given, "fraction"));
    output->data = CFGR_OBJECT(
        {"doubled", cfgr_integer(integer * 2)},
        {"halved", cfgr_double(fraction / 2)},
        {"negative", cfgr_integer(-integer)},
        {"list", list});
    return NULL;
}

/* The code point at the start of a text, and how many bytes it has. */
static uint32_t point(const char *text, size_t *size) {
    unsigned char first = (unsigned char)*text;
    *size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t value = *size == 1 ? first : first & (0x7fu >> *size);
    for (size_t i = 1; i < *size; i++) {
        value = value << 6 | ((unsigned char)text[i] & 0x3f);
    }
    return value;
}

const cfgr_error *unicode(const cfgr_input *input, cfgr_output *output) {
    const char *text = cfgr_string_or(cfgr_get(cfgr_input_object(input), "text"), "");
    cfgr_items points = {0};
    size_t size;
    for (const char *at = text; *at != '\0'; at += size) {
        cfgr_items_add(&points, cfgr_unsigned(point(at, &size)));
    }
    cfgr_json data = CFGR_OBJECT(
        {text, cfgr_string("key")},
        {"quoted", cfgr_string(cfgr_concat("\"", text, "\""))},
        {"control", cfgr_string("\xc0\x80\x1f\t\n\x7f")},
        {"escapes", cfgr_string("\\ / < > & ' \u2028")},
        {"astral", cfgr_string("𝄞 🙂 汉字")});
    cfgr_json body = CFGR_OBJECT(
        {"apiVersion", cfgr_string("v1")},
        {"kind", cfgr_string("ConfigMap")},
        {"metadata", CFGR_OBJECT({"namespace", cfgr_string("shop")}, {"name", cfgr_string("texts")})},
        {"data", data});
    cfgr_output_request(output, cfgr_concat("名-", text), cfgr_kubernetes_apply(CFGR_CONFIG_MAP, "shop", "texts", body));
    cfgr_output_pass(output, "points", cfgr_array(&points));
    return NULL;
}

const cfgr_error *deep(const cfgr_input *input, cfgr_output *output) {
    uint64_t levels = 1;
    cfgr_as_uint64(cfgr_get(cfgr_input_parameters(input), "levels"), &levels);
    cfgr_json nested = CFGR_ARRAY();
    for (uint64_t i = 1; i < levels; i++) {
        nested = CFGR_ARRAY(nested);
    }
    cfgr_output_pass(output, "nested", nested);
    return NULL;
}

const cfgr_error *large(const cfgr_input *input, cfgr_output *output) {
    uint64_t count = 0;
    cfgr_as_uint64(cfgr_get(cfgr_input_parameters(input), "items"), &count);
    cfgr_items items = {0};
    for (uint64_t i = 0; i < count; i++) {
        cfgr_items_add(&items, CFGR_OBJECT(
            {"index", cfgr_unsigned(i)},
            {"name", cfgr_string(cfgr_concat("item-", cfgr_decimal_unsigned(i)))},
            {"even", cfgr_bool(i % 2 == 0)},
            {"tags", CFGR_ARRAY(cfgr_string("a"), cfgr_string("b"), cfgr_null())}));
    }
    cfgr_output_pass(output, "items", cfgr_array(&items));
    return NULL;
}

/* Puts the argument `raw` into documents, as it stands. */
const cfgr_error *nested_json(const cfgr_input *input, cfgr_output *output) {
    cfgr_json raw = cfgr_raw(cfgr_input_find_argument(input, "raw"));
    cfgr_output_pass(output, "object", CFGR_OBJECT({"a", raw}));
    cfgr_output_pass(output, "list", CFGR_ARRAY(cfgr_integer(1), CFGR_ARRAY(raw, raw), cfgr_string("é")));
    return NULL;
}
