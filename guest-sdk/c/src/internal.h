/* What the files of the SDK tell one another. */
#ifndef CONFIGURATOR_INTERNAL_H
#define CONFIGURATOR_INTERNAL_H

#include <string.h>

#include "configurator/compiler.h"
#include "configurator/json.h"
#include "configurator/request.h"

/* A block whose content is not set. The alignment is a power of two, at most that of max_align_t. */
void *cfgr_place(size_t size, size_t alignment);

/* The block in another size; in place where it is the newest. What is added is not set. */
void *cfgr_resize(void *block, size_t old_size, size_t new_size);

/* Room for one more item at the end of a list, which grows by doubling. */
void *cfgr_room(void *items, size_t count, size_t *capacity, size_t size);

/* How many bytes a text has: strlen, which takes a byte at a time in some C libraries, and most of what a call takes. */
size_t cfgr_size(const char *text);

/* How many bytes of the text stand before the first U+0000, which is written with a byte that no other character has. */
size_t cfgr_before_zero(const char *text, size_t size);

/* Of the next eight bytes, how many stand for themselves in a string of JSON: those before a quote, a backslash or a control character. */
static inline unsigned cfgr_plain(const char *bytes) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t each = 0x0101010101010101;
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    uint64_t quote = word ^ (each * '"');
    uint64_t backslash = word ^ (each * '\\');
    uint64_t found = ((quote - each) & ~quote) | ((backslash - each) & ~backslash) | ((word - each * ' ') & ~word);
    found &= each * 0x80;
    /* A borrow can only mark bytes behind the first that is found. */
    return found == 0 ? 8 : (unsigned)__builtin_ctzll(found) / 8;
#else
    unsigned count = 0;
    while (count < 8 && (unsigned char)bytes[count] >= ' ' && bytes[count] != '"' && bytes[count] != '\\') {
        count++;
    }
    return count;
#endif
}

/* A text that grows. */
typedef struct cfgr_buffer {
    char *text;
    size_t size;
    size_t capacity;
} cfgr_buffer;

void cfgr_buffer_add(cfgr_buffer *buffer, const char *bytes, size_t size);
void cfgr_buffer_text(cfgr_buffer *buffer, const char *text);
void cfgr_buffer_byte(cfgr_buffer *buffer, char byte);
/* The text so far. */
const char *cfgr_buffer_end(cfgr_buffer *buffer);

/* The document of a text that lives as long as the call, which is not copied. */
cfgr_json cfgr_parse_kept(const char *text);

bool cfgr_is_utf8(const unsigned char *bytes, size_t size);

/* Copies with texts of their own. */
cfgr_entry cfgr_copy_entry(cfgr_entry entry);
cfgr_app_conf cfgr_copy_app_conf(cfgr_app_conf key);
cfgr_names cfgr_copy_names(cfgr_names names);
cfgr_object_ref cfgr_copy_ref(cfgr_object_ref of);

/* Adds a copy of the request. */
void cfgr_requests_add(cfgr_requests *requests, cfgr_request request);

/* The document of the value of this secret. Ends the call where it is absent. */
const char *cfgr_secret_value(const char *name, cfgr_json value);

#endif
