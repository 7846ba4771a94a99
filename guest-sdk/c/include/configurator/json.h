/*
 * Documents in JSON: read and made.
 *
 * A value is small and is passed as such. There is no NULL: what is not there is a value of the type CFGR_TYPE_ABSENT, of which everything
 * can be asked, so a path is followed without a look at each step:
 *
 *     const char *image = cfgr_string_or(cfgr_at(pod, "/spec/containers/0/image"), "");
 *
 * A value that was read is written as it stood in its text, byte for byte: numbers of any size, and order and spaces within it, survive.
 */
#ifndef CONFIGURATOR_JSON_H
#define CONFIGURATOR_JSON_H

#include "compiler.h"
#include "error.h"

typedef enum cfgr_json_type {
    CFGR_TYPE_ABSENT,
    CFGR_TYPE_NULL,
    CFGR_TYPE_BOOL,
    CFGR_TYPE_NUMBER,
    CFGR_TYPE_STRING,
    CFGR_TYPE_ARRAY,
    CFGR_TYPE_OBJECT,
    /* A text that was not read: cfgr_raw. */
    CFGR_TYPE_RAW,
    /* The end of a list that a macro makes. */
    CFGR_TYPE_END,
} cfgr_json_type;

typedef struct cfgr_json cfgr_json;
typedef struct cfgr_member cfgr_member;

/* A value. It does not change. */
struct cfgr_json {
    cfgr_json_type type;
    /* Items of an array, members of an object; otherwise 0. */
    size_t count;
    union {
        bool is_true;
        const char *string;
        const cfgr_json *items;
        const cfgr_member *members;
    };
    /* As it is written, where that is known. */
    const char *source;
    size_t source_size;
};

/* A member of an object. */
struct cfgr_member {
    const char *key;
    cfgr_json value;
};

/* --- Reading --- */

/* Values may be this many levels deep. The host allows documents 100. */
#define CFGR_MAX_DEPTH 128

/*
 * The document; absent where the text is NULL, is no JSON, or is too deep. Half of a pair of surrogates is read as U+FFFD.
 */
cfgr_json cfgr_parse(const char *text);

/* As cfgr_parse, of so many bytes. Absent also where they are no UTF-8. */
cfgr_json cfgr_parse_bytes(const void *bytes, size_t size);

/* The member with this key; of several, the last. Absent where there is none, or the value is no object. */
cfgr_json cfgr_get(cfgr_json object, const char *key);

/* What a JSON pointer leads to: "/spec/containers/0/image". In keys, `~1` stands for `/` and `~0` for `~`. */
cfgr_json cfgr_at(cfgr_json value, const char *pointer);

/* The item at this place, from 0. */
cfgr_json cfgr_item(cfgr_json array, size_t place);

/* The member at this place, from 0; its key is NULL where there is none. */
cfgr_member cfgr_member_at(cfgr_json object, size_t place);

static inline bool cfgr_is_absent(cfgr_json value) {
    return value.type == CFGR_TYPE_ABSENT;
}

/* The string; NULL where the value is none. */
const char *cfgr_as_string(cfgr_json value);

/* The string; this one where the value is none. */
const char *cfgr_string_or(cfgr_json value, const char *otherwise);

/*
 * The number, or whether it is true. Where the value is no such thing, or a number that does not fit, these return false and leave
 * `result` as it is: set it to the default before. An integer is a number without fraction and exponent.
 */
bool cfgr_as_int64(cfgr_json value, int64_t *result);
bool cfgr_as_uint64(cfgr_json value, uint64_t *result);
bool cfgr_as_double(cfgr_json value, double *result);
bool cfgr_as_bool(cfgr_json value, bool *result);

/* The string that the pointer leads to. Fatal where there is none. */
CFGR_MUST_USE const cfgr_error *cfgr_need_string(cfgr_json value, const char *pointer, const char **result);

/* --- Making --- */

cfgr_json cfgr_null(void);
cfgr_json cfgr_bool(bool value);
cfgr_json cfgr_integer(int64_t value);
cfgr_json cfgr_unsigned(uint64_t value);
/* In the fewest digits that give the same number again. Null for what JSON has no number for. It adds some 35 kB to a module. */
cfgr_json cfgr_double(double value);
/* Null for NULL. */
cfgr_json cfgr_string(const char *text);
/* A document as it stands, unread. The host refuses an output with one that is no JSON. Absent for NULL. */
cfgr_json cfgr_raw(const char *text);

/* An array: `CFGR_ARRAY(cfgr_integer(1), cfgr_null())`. What is absent becomes null. */
#define CFGR_ARRAY(...) cfgr_array_of((const cfgr_json[]){__VA_ARGS__ __VA_OPT__(, ) {.type = CFGR_TYPE_END}})

/* An object: `CFGR_OBJECT({"a", cfgr_integer(1)}, {"b", cfgr_null()})`. What is absent is left out. */
#define CFGR_OBJECT(...) cfgr_object_of((const cfgr_member[]){__VA_ARGS__ __VA_OPT__(, ) {.value = {.type = CFGR_TYPE_END}}})

/* Items of an array that grows. Begin with `cfgr_items items = {0}`. */
typedef struct cfgr_items {
    cfgr_json *items;
    size_t count;
    size_t capacity;
} cfgr_items;

void cfgr_items_add(cfgr_items *items, cfgr_json value);

/* The array of what was added so far. */
cfgr_json cfgr_array(const cfgr_items *items);

/* Members of an object that grows. Begin with `cfgr_members members = {0}`. */
typedef struct cfgr_members {
    cfgr_member *members;
    size_t count;
    size_t capacity;
} cfgr_members;

/* Adds a member, whose key must be new. */
void cfgr_members_add(cfgr_members *members, const char *key, cfgr_json value);

/* Adds a member, or changes the value of the one with this key. */
void cfgr_members_set(cfgr_members *members, const char *key, cfgr_json value);

/* Brings the members into the order of their keys, byte by byte. */
void cfgr_members_sort(cfgr_members *members);

/* The object of what was added so far. */
cfgr_json cfgr_object(const cfgr_members *members);

/* --- Writing --- */

/* The value as a text without spaces. NULL for what is absent. */
const char *cfgr_json_text(cfgr_json value);

/* What the macros call. */
cfgr_json cfgr_array_of(const cfgr_json *items);
cfgr_json cfgr_object_of(const cfgr_member *members);

#endif
