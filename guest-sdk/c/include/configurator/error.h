/* Why a handler could not decide. */
#ifndef CONFIGURATOR_ERROR_H
#define CONFIGURATOR_ERROR_H

#include "compiler.h"

typedef struct cfgr_error {
    const char *message;
    /* The phase fails at once; any other error is retried. */
    bool fatal;
    /* When to begin again, in place of the configurator's backoff; 0: as that says. No use on a fatal error. */
    uint64_t retry_after_ms;
    /* The code that the Configurator's `errorCodes` may know, or NULL. Unread in a chain, which has none. */
    const char *code;
} cfgr_error;

/*
 * An error that may pass: after backoff the run begins again, at the root phase and with the newest object.
 *
 *     return cfgr_retry("the account has no quota yet", .retry_after_ms = 30000, .code = "QUOTA");
 */
#define cfgr_retry(text, ...) cfgr_error_of((cfgr_error){.message = (text), .fatal = false __VA_OPT__(, ) __VA_ARGS__})

/* An error that the same input will always give: the phase fails at once, and the object is given up until it changes. */
#define cfgr_fatal(text, ...) cfgr_error_of((cfgr_error){.message = (text), .fatal = true __VA_OPT__(, ) __VA_ARGS__})

/* Returns the error of a function that returns one, where it does. */
#define CFGR_TRY(call)                          \
    do {                                        \
        const cfgr_error *cfgr_error_ = (call); \
        if (cfgr_error_ != NULL) {              \
            return cfgr_error_;                 \
        }                                       \
    } while (0)

/* What the macros call. */
CFGR_MUST_USE const cfgr_error *cfgr_error_of(cfgr_error error);

#endif
