#include "configurator/handler.h"

#include "configurator/panic.h"
#include "configurator/text.h"
#include "internal.h"

void cfgr_check_handlers(void) {
    for (size_t i = 0; i < cfgr_handler_count; i++) {
        const char *name = cfgr_handlers[i].name;
        if (name == NULL || *name == '\0') {
            cfgr_panic("a handler needs a name");
        }
        for (size_t j = 0; j < i; j++) {
            if (cfgr_equal(name, cfgr_handlers[j].name)) {
                cfgr_panic(cfgr_concat("two handlers have the name ", name));
            }
        }
    }
}

static const cfgr_error *unknown(const char *handler) {
    cfgr_buffer message = {0};
    cfgr_buffer_text(&message, cfgr_concat("this module has no handler `", handler, "`; it has: "));
    for (size_t i = 0; i < cfgr_handler_count; i++) {
        cfgr_buffer_text(&message, i == 0 ? "" : ", ");
        cfgr_buffer_text(&message, cfgr_handlers[i].name);
    }
    return cfgr_fatal(cfgr_buffer_end(&message));
}

const cfgr_error *cfgr_call(const char *handler, const cfgr_input *input, cfgr_output *output) {
    for (size_t i = 0; i < cfgr_handler_count; i++) {
        if (!cfgr_equal(cfgr_handlers[i].name, handler)) {
            continue;
        }
        if (cfgr_handlers[i].accepts == CFGR_ACCEPTS_ONE && input->is_batch) {
            return cfgr_fatal(cfgr_concat(
                "handler `", handler, "` takes one object, and got a batch: remove `chain.batch` from the Configurator"));
        }
        if (cfgr_handlers[i].accepts == CFGR_ACCEPTS_BATCH && !input->is_batch) {
            return cfgr_fatal(cfgr_concat(
                "handler `", handler, "` takes a batch, and got one object: add `chain.batch` to the Configurator"));
        }
        return cfgr_handlers[i].handle(input, output);
    }
    return unknown(handler);
}
