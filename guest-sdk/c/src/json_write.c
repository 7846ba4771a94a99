#include <string.h>

#include "configurator/json.h"
#include "configurator/panic.h"
#include "internal.h"

static void escape(cfgr_buffer *buffer, unsigned char byte) {
    static const char names[] = "btn?fr";
    static const char digits[] = "0123456789abcdef";
    char escaped[6] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    if (byte == '"' || byte == '\\') {
        escaped[1] = (char)byte;
        cfgr_buffer_add(buffer, escaped, 2);
    } else if (byte >= '\b' && byte <= '\r' && byte != '\v') {
        escaped[1] = names[byte - '\b'];
        cfgr_buffer_add(buffer, escaped, 2);
    } else {
        cfgr_buffer_add(buffer, escaped, 6);
    }
}

/* The bytes of a string that holds no U+0000. */
static void characters(cfgr_buffer *buffer, const char *text, const char *end) {
    while (text < end) {
        const char *plain = text;
        while (end - text >= 8 && cfgr_plain(text) == 8) {
            text += 8;
        }
        while (text < end && (unsigned char)*text >= ' ' && *text != '"' && *text != '\\') {
            text++;
        }
        cfgr_buffer_add(buffer, plain, (size_t)(text - plain));
        if (text < end) {
            escape(buffer, (unsigned char)*text++);
        }
    }
}

static void string(cfgr_buffer *buffer, const char *text) {
    const char *end = text + cfgr_size(text);
    cfgr_buffer_byte(buffer, '"');
    for (;;) {
        size_t size = cfgr_before_zero(text, (size_t)(end - text));
        characters(buffer, text, text + size);
        text += size;
        if (text == end) {
            break;
        }
        escape(buffer, 0);
        text += end - text == 1 ? 1 : 2;
    }
    cfgr_buffer_byte(buffer, '"');
}

static void value(cfgr_buffer *buffer, const cfgr_json *json, unsigned depth) {
    if (json->source != NULL) {
        cfgr_buffer_add(buffer, json->source, json->source_size);
        return;
    }
    if (depth > CFGR_MAX_DEPTH) {
        cfgr_panic("a document is too deep");
    }
    switch (json->type) {
    case CFGR_TYPE_BOOL:
        cfgr_buffer_text(buffer, json->is_true ? "true" : "false");
        break;
    case CFGR_TYPE_STRING:
        string(buffer, json->string);
        break;
    case CFGR_TYPE_ARRAY:
        cfgr_buffer_byte(buffer, '[');
        for (size_t i = 0; i < json->count; i++) {
            if (i > 0) {
                cfgr_buffer_byte(buffer, ',');
            }
            value(buffer, &json->items[i], depth + 1);
        }
        cfgr_buffer_byte(buffer, ']');
        break;
    case CFGR_TYPE_OBJECT:
        cfgr_buffer_byte(buffer, '{');
        for (size_t i = 0; i < json->count; i++) {
            if (i > 0) {
                cfgr_buffer_byte(buffer, ',');
            }
            string(buffer, json->members[i].key);
            cfgr_buffer_byte(buffer, ':');
            value(buffer, &json->members[i].value, depth + 1);
        }
        cfgr_buffer_byte(buffer, '}');
        break;
    /* Numbers and texts that were not read have a source. */
    default:
        cfgr_buffer_text(buffer, "null");
    }
}

const char *cfgr_json_text(cfgr_json json) {
    if (json.type == CFGR_TYPE_ABSENT) {
        return NULL;
    }
    cfgr_buffer buffer = {0};
    value(&buffer, &json, 0);
    return cfgr_buffer_end(&buffer);
}
