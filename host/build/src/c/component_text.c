/* Texts and lists of names. */
#include <string.h>

#include "component.h"

/* Of the SDK: the bytes of a text, and those before a U+0000. */
size_t cfgr_size(const char *text);
size_t cfgr_before_zero(const char *text, size_t size);

const char *cfgr_text_in(configurator_string_t text) {
    const char *bytes = cfgr_document_in(text);
    if (memchr(bytes, '\0', text.len) == NULL) {
        return bytes;
    }
    char *copy = cfgr_alloc(text.len * 2 + 1);
    size_t kept = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (bytes[i] == '\0') {
            copy[kept++] = '\xc0';
            copy[kept++] = '\x80';
        } else {
            copy[kept++] = bytes[i];
        }
    }
    return copy;
}

configurator_string_t cfgr_text_out(const char *text) {
    if (text == NULL) {
        text = "";
    }
    size_t size = cfgr_size(text);
    if (cfgr_before_zero(text, size) == size) {
        return (configurator_string_t){(uint8_t *)text, size};
    }
    char *copy = cfgr_alloc(size);
    size_t kept = 0;
    for (size_t i = 0; i < size; i++) {
        bool is_zero = text[i] == '\xc0' && text[i + 1] == '\x80';
        copy[kept++] = is_zero ? '\0' : text[i];
        i += is_zero ? 1 : 0;
    }
    return (configurator_string_t){(uint8_t *)copy, kept};
}

cfgr_names cfgr_names_in(configurator_list_string_t list) {
    const char **items = cfgr_alloc_items(list.len, sizeof *items);
    for (size_t i = 0; i < list.len; i++) {
        items[i] = cfgr_text_in(list.ptr[i]);
    }
    return (cfgr_names){items, list.len};
}

configurator_list_string_t cfgr_names_out(cfgr_names names) {
    configurator_string_t *items = cfgr_alloc_items(names.count, sizeof *items);
    for (size_t i = 0; i < names.count; i++) {
        items[i] = cfgr_text_out(names.items[i]);
    }
    return (configurator_list_string_t){items, names.count};
}
