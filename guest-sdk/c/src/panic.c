#include "configurator/panic.h"

#include <stdlib.h>

#include "configurator/log.h"
#include "configurator/text.h"

static bool is_panicking;

CFGR_NO_RETURN static void end(void) {
#ifdef __wasm__
    __builtin_trap();
#else
    abort();
#endif
}

void cfgr_panic_at(const char *message, const char *file, int line) {
    if (message == NULL) {
        message = "without a message";
    }
    if (is_panicking) {
        /* There is no memory for what is said below. */
        cfgr_log(CFGR_ERROR, message);
        end();
    }
    is_panicking = true;
    const char *said = cfgr_concat("the handler panicked: ", message);
    if (file == NULL) {
        cfgr_log(CFGR_ERROR, said);
    } else {
        cfgr_log(CFGR_ERROR, said, {"location", cfgr_concat(file, ":", cfgr_decimal(line))});
    }
    end();
}
