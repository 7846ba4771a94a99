#include "configurator/log.h"

#ifndef __wasm__

#include <stdio.h>

/* In a module, the line goes to the host: this is for tests. */
void cfgr_log_line(cfgr_log_level level, const char *message, const cfgr_log_field *fields) {
    static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR"};
    fprintf(stderr, "%s %s", names[level], message);
    for (; fields->key != NULL; fields++) {
        fprintf(stderr, " %s=\"%s\"", fields->key, fields->value);
    }
    fputc('\n', stderr);
}

#endif
