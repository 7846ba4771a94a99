/*
 * Log lines of a handler.
 *
 * The host adds the Configurator, the phase and the run's id to each line, and drops lines past its limit: 1,000 lines and 64 KiB a call,
 * 4 KiB a line. Natively, lines go to standard error.
 */
#ifndef CONFIGURATOR_LOG_H
#define CONFIGURATOR_LOG_H

#include "compiler.h"

typedef enum cfgr_log_level {
    /* For a person who follows every step. */
    CFGR_TRACE,
    /* For a person who looks for a fault. */
    CFGR_DEBUG,
    /* What is worth knowing when all is well. */
    CFGR_INFO,
    /* What is odd and does no harm yet. */
    CFGR_WARN,
    /* What went wrong. */
    CFGR_ERROR,
} cfgr_log_level;

/* Stays apart from the message in structured logs. */
typedef struct cfgr_log_field {
    const char *key;
    const char *value;
} cfgr_log_field;

/* A line, with fields: `cfgr_log(CFGR_INFO, "composed", {"layers", "3"}, {"keys", "12"})`. */
#define cfgr_log(level, message, ...) \
    cfgr_log_line((level), (message), (const cfgr_log_field[]){__VA_ARGS__ __VA_OPT__(, ) {NULL, NULL}})

/* What the macro calls; the field without a key is the end. */
void cfgr_log_line(cfgr_log_level level, const char *message, const cfgr_log_field *fields);

#endif
