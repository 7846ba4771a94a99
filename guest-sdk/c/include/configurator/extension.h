/*
 * Requests to extensions: sinks that the embedder of the host adds.
 *
 *     cfgr_extension_request("dns", "delete", "example.org/www")
 *     cfgr_extension_request_with("dns", "upsert", "example.org/www", CFGR_OBJECT({"a", cfgr_string("192.0.2.1")}))
 */
#ifndef CONFIGURATOR_EXTENSION_H
#define CONFIGURATOR_EXTENSION_H

#include "compiler.h"
#include "json.h"

/* A request to an extension; made by the functions below. */
typedef struct cfgr_extension {
    /* The name of the extension. */
    const char *extension;
    /* What to do: a word of the extension. */
    const char *verb;
    /* What to do it to: an address within the extension. */
    const char *target;
    /* A document, or NULL. */
    const char *body;
} cfgr_extension;

/* Does what the verb of the extension says to this target. A host without the extension refuses it with `UnsupportedResourceOperation`. */
cfgr_extension cfgr_extension_request(const char *extension, const char *verb, const char *target);

/* As cfgr_extension_request, with a body. A body that is absent is left out. */
cfgr_extension cfgr_extension_request_with(const char *extension, const char *verb, const char *target, cfgr_json body);

#endif
