#include "configurator/json.h"

#include <stdlib.h>
#include <string.h>

#include "configurator/panic.h"
#include "configurator/text.h"
#include "internal.h"

cfgr_json cfgr_get(cfgr_json object, const char *key) {
    if (object.type == CFGR_TYPE_OBJECT) {
        for (size_t i = object.count; i-- > 0;) {
            if (strcmp(object.members[i].key, key) == 0) {
                return object.members[i].value;
            }
        }
    }
    return (cfgr_json){0};
}

/* Whether the token of a pointer stands for this key. */
static bool stands_for(const char *token, size_t size, const char *key) {
    const char *end = token + size;
    for (; token < end; token++, key++) {
        char byte = *token;
        if (byte == '~' && token + 1 < end) {
            byte = *++token == '1' ? '/' : '~';
        }
        if (*key != byte) {
            return false;
        }
    }
    return *key == '\0';
}

static cfgr_json step(cfgr_json value, const char *token, size_t size) {
    if (value.type == CFGR_TYPE_OBJECT) {
        for (size_t i = value.count; i-- > 0;) {
            if (stands_for(token, size, value.members[i].key)) {
                return value.members[i].value;
            }
        }
    } else if (value.type == CFGR_TYPE_ARRAY && size > 0) {
        size_t place = 0;
        for (size_t i = 0; i < size; i++) {
            if (token[i] < '0' || token[i] > '9' || place > value.count) {
                return (cfgr_json){0};
            }
            place = place * 10 + (size_t)(token[i] - '0');
        }
        return cfgr_item(value, place);
    }
    return (cfgr_json){0};
}

cfgr_json cfgr_at(cfgr_json value, const char *pointer) {
    while (*pointer == '/') {
        pointer++;
        size_t size = strcspn(pointer, "/");
        value = step(value, pointer, size);
        pointer += size;
    }
    return *pointer == '\0' ? value : (cfgr_json){0};
}

cfgr_json cfgr_item(cfgr_json array, size_t place) {
    return array.type == CFGR_TYPE_ARRAY && place < array.count ? array.items[place] : (cfgr_json){0};
}

cfgr_member cfgr_member_at(cfgr_json object, size_t place) {
    return object.type == CFGR_TYPE_OBJECT && place < object.count ? object.members[place] : (cfgr_member){0};
}

const char *cfgr_as_string(cfgr_json value) {
    return value.type == CFGR_TYPE_STRING ? value.string : NULL;
}

const char *cfgr_string_or(cfgr_json value, const char *otherwise) {
    return value.type == CFGR_TYPE_STRING ? value.string : otherwise;
}

bool cfgr_as_bool(cfgr_json value, bool *result) {
    if (value.type != CFGR_TYPE_BOOL) {
        return false;
    }
    *result = value.is_true;
    return true;
}

/* The digits of an integer; false where it is none, or does not fit. */
static bool magnitude(const char *digits, const char *end, uint64_t *result) {
    uint64_t number = 0;
    for (; digits < end; digits++) {
        unsigned digit = (unsigned)(*digits - '0');
        if (digit > 9 || number > UINT64_MAX / 10 || number * 10 > UINT64_MAX - digit) {
            return false;
        }
        number = number * 10 + digit;
    }
    *result = number;
    return true;
}

bool cfgr_as_uint64(cfgr_json value, uint64_t *result) {
    return value.type == CFGR_TYPE_NUMBER && magnitude(value.source, value.source + value.source_size, result);
}

bool cfgr_as_int64(cfgr_json value, int64_t *result) {
    if (value.type != CFGR_TYPE_NUMBER) {
        return false;
    }
    const char *end = value.source + value.source_size;
    bool is_negative = *value.source == '-';
    uint64_t number;
    if (!magnitude(value.source + (is_negative ? 1 : 0), end, &number) || number > (uint64_t)INT64_MAX + (is_negative ? 1 : 0)) {
        return false;
    }
    *result = is_negative ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

const cfgr_error *cfgr_need_string(cfgr_json value, const char *pointer, const char **result) {
    *result = cfgr_as_string(cfgr_at(value, pointer));
    return *result == NULL ? cfgr_fatal(cfgr_concat("there is no string at ", pointer)) : NULL;
}

cfgr_json cfgr_null(void) {
    return (cfgr_json){.type = CFGR_TYPE_NULL};
}

cfgr_json cfgr_bool(bool value) {
    return (cfgr_json){.type = CFGR_TYPE_BOOL, .is_true = value};
}

static cfgr_json number(const char *digits) {
    return (cfgr_json){.type = CFGR_TYPE_NUMBER, .source = digits, .source_size = cfgr_size(digits)};
}

cfgr_json cfgr_integer(int64_t value) {
    return number(cfgr_decimal(value));
}

cfgr_json cfgr_unsigned(uint64_t value) {
    return number(cfgr_decimal_unsigned(value));
}

cfgr_json cfgr_string(const char *text) {
    return text == NULL ? cfgr_null() : (cfgr_json){.type = CFGR_TYPE_STRING, .string = cfgr_copy(text)};
}

cfgr_json cfgr_raw(const char *text) {
    if (text == NULL) {
        return (cfgr_json){0};
    }
    size_t size = cfgr_size(text);
    return (cfgr_json){.type = CFGR_TYPE_RAW, .source = cfgr_copy_bytes(text, size), .source_size = size};
}

static cfgr_json array(const cfgr_json *items, size_t count) {
    cfgr_json *copy = cfgr_place(count * sizeof *copy, _Alignof(cfgr_json));
    for (size_t i = 0; i < count; i++) {
        copy[i] = items[i];
    }
    return (cfgr_json){.type = CFGR_TYPE_ARRAY, .count = count, .items = copy};
}

cfgr_json cfgr_array_of(const cfgr_json *items) {
    size_t count = 0;
    while (items[count].type != CFGR_TYPE_END) {
        count++;
    }
    return array(items, count);
}

cfgr_json cfgr_array(const cfgr_items *items) {
    return array(items->items, items->count);
}

void cfgr_items_add(cfgr_items *items, cfgr_json value) {
    items->items = cfgr_room(items->items, items->count, &items->capacity, sizeof *items->items);
    items->items[items->count++] = value;
}

static const char *key_of(const char *key) {
    if (key == NULL) {
        cfgr_panic("a member of an object has no key");
    }
    return cfgr_copy(key);
}

/* What is absent is left out. The keys are copied before. */
static cfgr_json object(const cfgr_member *members, size_t count) {
    cfgr_member *copy = cfgr_place(count * sizeof *copy, _Alignof(cfgr_member));
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (members[i].value.type != CFGR_TYPE_ABSENT) {
            copy[kept++] = members[i];
        }
    }
    return (cfgr_json){.type = CFGR_TYPE_OBJECT, .count = kept, .members = copy};
}

cfgr_json cfgr_object_of(const cfgr_member *members) {
    size_t count = 0;
    while (members[count].value.type != CFGR_TYPE_END) {
        count++;
    }
    cfgr_json made = object(members, count);
    /* The copy is ours alone so far. */
    cfgr_member *copies = (cfgr_member *)made.members;
    for (size_t i = 0; i < made.count; i++) {
        copies[i].key = key_of(copies[i].key);
    }
    return made;
}

cfgr_json cfgr_object(const cfgr_members *members) {
    return object(members->members, members->count);
}

void cfgr_members_add(cfgr_members *members, const char *key, cfgr_json value) {
    members->members = cfgr_room(members->members, members->count, &members->capacity, sizeof *members->members);
    members->members[members->count++] = (cfgr_member){key_of(key), value};
}

void cfgr_members_set(cfgr_members *members, const char *key, cfgr_json value) {
    for (size_t i = 0; i < members->count; i++) {
        if (cfgr_equal(members->members[i].key, key)) {
            members->members[i].value = value;
            return;
        }
    }
    cfgr_members_add(members, key, value);
}

static int by_key(const void *one, const void *other) {
    return strcmp(((const cfgr_member *)one)->key, ((const cfgr_member *)other)->key);
}

void cfgr_members_sort(cfgr_members *members) {
    if (members->count > 1) {
        qsort(members->members, members->count, sizeof *members->members, by_key);
    }
}
