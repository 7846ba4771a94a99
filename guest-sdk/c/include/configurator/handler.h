/* Handlers, and the table by which the host finds them. */
#ifndef CONFIGURATOR_HANDLER_H
#define CONFIGURATOR_HANDLER_H

#include "compiler.h"
#include "error.h"
#include "input.h"
#include "output.h"

/* A handler: it fills the output and returns NULL, or returns an error, and what it has filled in is dropped. */
typedef const cfgr_error *cfgr_handle(const cfgr_input *input, cfgr_output *output);

/* How a person sees the handler's progress. In a chain only `configurator inspect` shows it. */
typedef enum cfgr_view {
    CFGR_VIEW_NONE,
    CFGR_VIEW_CHECK_LIST,
    CFGR_VIEW_OBJECT_DETAIL,
} cfgr_view;

/* Whether it takes one object, a batch, or both. */
typedef enum cfgr_accepts {
    CFGR_ACCEPTS_ONE,
    CFGR_ACCEPTS_BATCH,
    CFGR_ACCEPTS_EITHER,
} cfgr_accepts;

/* A function with the name under which a Configurator's phases call it. */
typedef struct cfgr_handler {
    const char *name;
    cfgr_handle *handle;
    /* One sentence for `configurator inspect`. */
    const char *description;
    cfgr_view view;
    cfgr_accepts accepts;
    /* The JSON Schema that the Configurator's `spec.parameters` must meet, or NULL. `configurator inspect` shows it; the host does not hold
     * the parameters to it, so the handler has to. */
    const char *parameters_schema;
    /* What the handler may ask for at most: JSON in the form of the Configurator's `spec.capabilities`, or NULL, where nothing is said. A
     * host does not run the module where a Configurator grants less. */
    const char *capabilities;
} cfgr_handler;

/*
 * Makes the program a module of these handlers. To be said once, outside functions.
 *
 *     CFGR_MODULE(
 *         {"root", root, .description = "Asks for the Node."},
 *         {"write", write, .description = "Writes what has changed.", .accepts = CFGR_ACCEPTS_BATCH});
 */
#define CFGR_MODULE(...)                                    \
    const cfgr_handler cfgr_handlers[] = {__VA_ARGS__};     \
    const size_t cfgr_handler_count = sizeof(cfgr_handlers) / sizeof(cfgr_handler)

/* The handlers of this module, in the order in which it lists them. */
extern const cfgr_handler cfgr_handlers[];
extern const size_t cfgr_handler_count;

/* Calls the handler of this name, as the host does. Fatal when there is no such handler, or it does not accept this input. */
CFGR_MUST_USE const cfgr_error *cfgr_call(const char *handler, const cfgr_input *input, cfgr_output *output);

/* Ends the program where a handler has no name, or the name of another. */
void cfgr_check_handlers(void);

#endif
