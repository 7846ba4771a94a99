/*
 * The parser. It works in a copy of the text, in which strings are ended where their quote was and escapes are replaced by what they stand
 * for, which is never longer. So a string costs no memory of its own.
 */
#include <string.h>

#include "configurator/json.h"
#include "configurator/text.h"
#include "internal.h"

/* Zeros behind the copy, so that a step of this many bytes needs no look at the end. A zero byte ends everything. */
#define STRIDE 8

/* Room for the members of objects that are being read. */
#define OPEN_MEMBERS 64

typedef struct parser {
    char *at;
    const char *copy;
    const char *text;
    /* Members and items of what is not closed yet. */
    cfgr_member *open;
    size_t count;
    size_t capacity;
} parser;

static bool value(parser *p, cfgr_json *result, unsigned depth);

static inline void spaces(parser *p) {
    while (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t') {
        p->at++;
    }
}

static inline bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

/* Past the bytes that stand for themselves in a string. */
static inline char *past_plain(char *at) {
    unsigned plain;
    do {
        plain = cfgr_plain(at);
        at += plain;
    } while (plain == STRIDE);
    return at;
}

/* The four digits of an escape, or -1. */
static int32_t code_unit(const char *digits) {
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        char digit = digits[i];
        int32_t number = is_digit(digit)                   ? digit - '0'
                         : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                         : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                        : -1;
        if (number < 0) {
            return -1;
        }
        unit = unit * 16 + number;
    }
    return unit;
}

static char *put_point(char *to, uint32_t point) {
    if (point != 0 && point < 0x80) {
        *to++ = (char)point;
        return to;
    }
    /* U+0000 takes two bytes, so that it does not end the text. */
    if (point < 0x800) {
        *to++ = (char)(0xc0 | point >> 6);
    } else {
        if (point < 0x10000) {
            *to++ = (char)(0xe0 | point >> 12);
        } else {
            *to++ = (char)(0xf0 | point >> 18);
            *to++ = (char)(0x80 | (point >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (point >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (point & 0x3f));
    return to;
}

/* What stands after `\u`; half of a pair is U+FFFD. */
static bool escaped_point(parser *p, char **to) {
    int32_t unit = code_unit(p->at);
    if (unit < 0) {
        return false;
    }
    p->at += 4;
    uint32_t point = (uint32_t)unit;
    if (point >= 0xd800 && point < 0xe000) {
        int32_t low = point < 0xdc00 && p->at[0] == '\\' && p->at[1] == 'u' ? code_unit(p->at + 2) : -1;
        if (low >= 0xdc00 && low < 0xe000) {
            point = 0x10000 + ((point - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
            p->at += 6;
        } else {
            point = 0xfffd;
        }
    }
    *to = put_point(*to, point);
    return true;
}

/* A string, from its quote. */
static bool string(parser *p, const char **result) {
    char *start = ++p->at;
    char *to = p->at = past_plain(start);
    while (*p->at != '"') {
        if (*p->at != '\\') {
            return false;
        }
        char escape = p->at[1];
        p->at += 2;
        switch (escape) {
        case '"':
        case '\\':
        case '/':
            *to++ = escape;
            break;
        case 'b':
            *to++ = '\b';
            break;
        case 'f':
            *to++ = '\f';
            break;
        case 'n':
            *to++ = '\n';
            break;
        case 'r':
            *to++ = '\r';
            break;
        case 't':
            *to++ = '\t';
            break;
        case 'u':
            if (!escaped_point(p, &to)) {
                return false;
            }
            break;
        default:
            return false;
        }
        char *plain = p->at;
        p->at = past_plain(plain);
        memmove(to, plain, (size_t)(p->at - plain));
        to += p->at - plain;
    }
    *to = '\0';
    p->at++;
    *result = start;
    return true;
}

static bool digits(parser *p) {
    if (!is_digit(*p->at)) {
        return false;
    }
    while (is_digit(*p->at)) {
        p->at++;
    }
    return true;
}

static bool number(parser *p) {
    if (*p->at == '-') {
        p->at++;
    }
    if (*p->at == '0') {
        p->at++;
    } else if (!digits(p)) {
        return false;
    }
    if (*p->at == '.') {
        p->at++;
        if (!digits(p)) {
            return false;
        }
    }
    if (*p->at == 'e' || *p->at == 'E') {
        p->at++;
        if (*p->at == '+' || *p->at == '-') {
            p->at++;
        }
        return digits(p);
    }
    return true;
}

static bool literal(parser *p, const char *word, size_t size) {
    if (memcmp(p->at, word, size) != 0) {
        return false;
    }
    p->at += size;
    return true;
}

static void keep(parser *p, cfgr_member member) {
    p->open = cfgr_room(p->open, p->count, &p->capacity, sizeof *p->open);
    p->open[p->count++] = member;
}

/* An array or object, from behind its bracket. */
static bool list(parser *p, cfgr_json *result, unsigned depth) {
    bool is_object = result->type == CFGR_TYPE_OBJECT;
    char close = is_object ? '}' : ']';
    size_t first = p->count;
    spaces(p);
    bool is_empty = *p->at == close;
    while (!is_empty) {
        cfgr_member member = {0};
        if (is_object) {
            if (*p->at != '"' || !string(p, &member.key)) {
                return false;
            }
            spaces(p);
            if (*p->at++ != ':') {
                return false;
            }
            spaces(p);
        }
        if (!value(p, &member.value, depth)) {
            return false;
        }
        keep(p, member);
        spaces(p);
        if (*p->at == close) {
            break;
        }
        if (*p->at++ != ',') {
            return false;
        }
        spaces(p);
    }
    p->at++;
    size_t count = p->count - first;
    p->count = first;
    result->count = count;
    if (count == 0) {
        return true;
    }
    if (is_object) {
        cfgr_member *members = cfgr_place(count * sizeof *members, _Alignof(cfgr_member));
        memcpy(members, p->open + first, count * sizeof *members);
        result->members = members;
    } else {
        cfgr_json *items = cfgr_place(count * sizeof *items, _Alignof(cfgr_json));
        for (size_t i = 0; i < count; i++) {
            items[i] = p->open[first + i].value;
        }
        result->items = items;
    }
    return true;
}

/* A value without spaces around it; `depth` levels are around it. */
static bool value(parser *p, cfgr_json *result, unsigned depth) {
    char *start = p->at;
    bool is_good;
    switch (*start) {
    case '{':
    case '[':
        result->type = *start == '{' ? CFGR_TYPE_OBJECT : CFGR_TYPE_ARRAY;
        p->at++;
        is_good = depth < CFGR_MAX_DEPTH && list(p, result, depth + 1);
        break;
    case '"':
        result->type = CFGR_TYPE_STRING;
        is_good = string(p, &result->string);
        break;
    case 't':
        result->type = CFGR_TYPE_BOOL;
        result->is_true = true;
        is_good = literal(p, "true", 4);
        break;
    case 'f':
        result->type = CFGR_TYPE_BOOL;
        is_good = literal(p, "false", 5);
        break;
    case 'n':
        result->type = CFGR_TYPE_NULL;
        is_good = literal(p, "null", 4);
        break;
    default:
        result->type = CFGR_TYPE_NUMBER;
        is_good = number(p);
    }
    result->source = p->text + (start - p->copy);
    result->source_size = (size_t)(p->at - start);
    return is_good;
}

static cfgr_json parse(const char *text, size_t size) {
    char *copy = cfgr_place(size + STRIDE, 1);
    memcpy(copy, text, size);
    memset(copy + size, 0, STRIDE);
    parser p = {
        .at = copy,
        .copy = copy,
        .text = text,
        .open = cfgr_place(OPEN_MEMBERS * sizeof(cfgr_member), _Alignof(cfgr_member)),
        .capacity = OPEN_MEMBERS,
    };
    cfgr_json result = {0};
    spaces(&p);
    if (!value(&p, &result, 0)) {
        return (cfgr_json){0};
    }
    spaces(&p);
    return p.at == copy + size ? result : (cfgr_json){0};
}

cfgr_json cfgr_parse_kept(const char *text) {
    return text == NULL ? (cfgr_json){0} : parse(text, cfgr_size(text));
}

cfgr_json cfgr_parse(const char *text) {
    return cfgr_parse_kept(cfgr_copy(text));
}

cfgr_json cfgr_parse_bytes(const void *bytes, size_t size) {
    if (bytes == NULL || !cfgr_is_utf8(bytes, size)) {
        return (cfgr_json){0};
    }
    return parse(cfgr_copy_bytes(bytes, size), size);
}

bool cfgr_is_utf8(const unsigned char *bytes, size_t size) {
    const unsigned char *end = bytes + size;
    while (bytes < end) {
        unsigned char first = *bytes++;
        if (first < 0x80) {
            continue;
        }
        int more = first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : 0;
        if (more == 0 || end - bytes < more) {
            return false;
        }
        /* What is too long, a surrogate, or past U+10FFFF shows in the second byte. */
        unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (bytes[0] < least || bytes[0] > most) {
            return false;
        }
        for (int i = 1; i < more; i++) {
            if ((bytes[i] & 0xc0) != 0x80) {
                return false;
            }
        }
        bytes += more;
    }
    return true;
}
