#include "configurator/text.h"

#include <string.h>

#include "configurator/panic.h"
#include "internal.h"

const char cfgr_end_of_texts[] = "";

size_t cfgr_size(const char *text) {
#ifdef __wasm__
    /* Eight bytes at a time, from where they lie side by side: these are never partly outside of the memory. */
    const uint64_t each = 0x0101010101010101;
    size_t before = (uintptr_t)text % sizeof(uint64_t);
    typedef uint64_t __attribute__((may_alias)) any;
    const any *at = (const any *)(text - before);
    uint64_t word = *at | (((uint64_t)1 << before * 8) - 1);
    uint64_t zeros;
    while ((zeros = (word - each) & ~word & (each * 0x80)) == 0) {
        word = *++at;
    }
    return (size_t)((const char *)at + __builtin_ctzll(zeros) / 8 - text);
#else
    return strlen(text);
#endif
}

size_t cfgr_before_zero(const char *text, size_t size) {
    const uint64_t each = 0x0101010101010101;
    size_t at = 0;
    for (; size - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, text + at, sizeof word);
        word ^= each * 0xc0;
        if (((word - each) & ~word & (each * 0x80)) != 0) {
            break;
        }
    }
    while (at < size && text[at] != '\xc0') {
        at++;
    }
    return at;
}

const char *cfgr_copy_bytes(const char *bytes, size_t size) {
    if (size == SIZE_MAX) {
        cfgr_panic("out of memory");
    }
    char *copy = cfgr_place(size + 1, 1);
    if (size != 0) {
        memcpy(copy, bytes, size);
    }
    copy[size] = '\0';
    return copy;
}

const char *cfgr_copy(const char *text) {
    return text == NULL ? NULL : cfgr_copy_bytes(text, cfgr_size(text));
}

const char *cfgr_concat_all(const char *const *texts) {
    cfgr_buffer buffer = {0};
    for (size_t i = 0; texts[i] != cfgr_end_of_texts; i++) {
        if (texts[i] == NULL) {
            cfgr_panic("cfgr_concat was given NULL");
        }
        cfgr_buffer_text(&buffer, texts[i]);
    }
    return cfgr_buffer_end(&buffer);
}

const char *cfgr_decimal_unsigned(uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return cfgr_copy_bytes(digits + at, sizeof digits - at);
}

const char *cfgr_decimal(int64_t number) {
    if (number >= 0) {
        return cfgr_decimal_unsigned((uint64_t)number);
    }
    return cfgr_concat("-", cfgr_decimal_unsigned(-(uint64_t)number));
}

bool cfgr_equal(const char *one, const char *other) {
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

const char *cfgr_after(const char *text, const char *prefix) {
    size_t size = strlen(prefix);
    return text != NULL && strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

void cfgr_buffer_add(cfgr_buffer *buffer, const char *bytes, size_t size) {
    /* One byte more, for the zero. */
    if (buffer->capacity - buffer->size <= size) {
        size_t capacity = buffer->capacity == 0 ? 64 : buffer->capacity;
        while (capacity - buffer->size <= size) {
            if (capacity > SIZE_MAX / 4) {
                cfgr_panic("out of memory");
            }
            capacity *= 2;
        }
        buffer->text = cfgr_resize(buffer->text, buffer->capacity, capacity);
        buffer->capacity = capacity;
    }
    if (size != 0) {
        memcpy(buffer->text + buffer->size, bytes, size);
        buffer->size += size;
    }
}

void cfgr_buffer_text(cfgr_buffer *buffer, const char *text) {
    cfgr_buffer_add(buffer, text, cfgr_size(text));
}

void cfgr_buffer_byte(cfgr_buffer *buffer, char byte) {
    cfgr_buffer_add(buffer, &byte, 1);
}

const char *cfgr_buffer_end(cfgr_buffer *buffer) {
    cfgr_buffer_add(buffer, "", 0);
    buffer->text[buffer->size] = '\0';
    return cfgr_resize(buffer->text, buffer->capacity, buffer->size + 1);
}
