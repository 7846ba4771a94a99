/* In a file of its own, so that a module which does not format has no code for it. */
#include <stdarg.h>
#include <stdio.h>

#include "configurator/panic.h"
#include "configurator/text.h"
#include "internal.h"

const char *cfgr_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size < 0) {
        cfgr_panic("cfgr_format was given what cannot be formatted");
    }
    char *text = cfgr_place((size_t)size + 1, 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)size + 1, format, arguments);
    va_end(arguments);
    return text;
}
