/* The functions that the host and a module call of each other. Every module is compiled with this file and the component_*.c files. */
#include <string.h>

#include "component.h"

/* Of the SDK: a block whose content is not set. */
void *cfgr_place(size_t size, size_t alignment);

/*
 * Memory for what the host hands in. One byte more than it asks for: a text then ends with a zero, as texts of the SDK do.
 */
__attribute__((__export_name__("cabi_realloc"))) void *cabi_realloc(void *block, size_t old_size, size_t alignment, size_t size) {
    char *made = cfgr_place(size + 1, alignment);
    if (old_size != 0) {
        memcpy(made, block, old_size < size ? old_size : size);
    }
    made[size] = '\0';
    return made;
}

/* Nothing is freed: an instance lives for one call. These take the place of what would free an output, and are not exported. */
void __wasm_export_exports_configurator_handler_handler_describe_post_return(uint8_t *result) {
    (void)result;
}

void __wasm_export_exports_configurator_handler_handler_handle_post_return(uint8_t *result) {
    (void)result;
}

/* --- What the host calls --- */

void exports_configurator_handler_handler_describe(exports_configurator_handler_handler_module_description_t *to) {
    cfgr_check_handlers();
    exports_configurator_handler_handler_handler_description_t *items = cfgr_alloc_items(cfgr_handler_count, sizeof *items);
    for (size_t i = 0; i < cfgr_handler_count; i++) {
        const cfgr_handler *handler = &cfgr_handlers[i];
        items[i].name = cfgr_text_out(handler->name);
        items[i].description = cfgr_text_out(handler->description);
        items[i].view = (uint8_t)handler->view;
        items[i].accepts = (uint8_t)handler->accepts;
        TEXT_OUT(items[i].parameters_schema, handler->parameters_schema);
        TEXT_OUT(items[i].capabilities, handler->capabilities);
    }
    to->handlers = (exports_configurator_handler_handler_list_handler_description_t){items, cfgr_handler_count};
}

bool exports_configurator_handler_handler_handle(configurator_string_t *handler,
                                                 exports_configurator_handler_handler_handler_input_t *from,
                                                 exports_configurator_handler_handler_handler_output_t *to,
                                                 exports_configurator_handler_handler_handler_error_t *error) {
    cfgr_input input = cfgr_input_in(from);
    cfgr_output output = {0};
    const cfgr_error *failure = cfgr_call(cfgr_text_in(*handler), &input, &output);
    if (failure != NULL) {
        *error = cfgr_error_out(failure);
        return false;
    }
    *to = cfgr_output_out(&output);
    return true;
}

/* --- What a handler calls --- */

void cfgr_log_line(cfgr_log_level level, const char *message, const cfgr_log_field *fields) {
    /* Without the memory of the call, which may be what is out. More fields than this are left out. */
    configurator_tuple2_string_string_t items[32];
    size_t count = 0;
    for (; fields[count].key != NULL && count < sizeof items / sizeof *items; count++) {
        items[count] = (configurator_tuple2_string_string_t){cfgr_text_out(fields[count].key), cfgr_text_out(fields[count].value)};
    }
    configurator_string_t line = cfgr_text_out(message);
    configurator_list_tuple2_string_string_t list = {items, count};
    configurator_handler_log_log((uint8_t)level, &line, &list);
}
