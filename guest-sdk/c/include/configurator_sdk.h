/*
 * Write configurator handlers in C.
 *
 * A handler is a plain function. It reads an input, decides, and fills an output: requests that the host carries out, and arguments
 * for the next phase. It talks to no server, reads no clock and keeps nothing.
 *
 *     #include <configurator_sdk.h>
 *
 *     // Gives every Namespace a ConfigMap that names it.
 *     static const cfgr_error *root(const cfgr_input *input, cfgr_output *output) {
 *         cfgr_json namespace = cfgr_input_object(input);
 *         const char *name;
 *         CFGR_TRY(cfgr_need_string(namespace, "/metadata/name", &name));
 *         cfgr_json about = CFGR_OBJECT(
 *             {"apiVersion", cfgr_string("v1")},
 *             {"kind", cfgr_string("ConfigMap")},
 *             {"metadata", CFGR_OBJECT({"namespace", cfgr_string(name)}, {"name", cfgr_string("about")})},
 *             {"data", CFGR_OBJECT({"namespace", cfgr_string(name)})});
 *         cfgr_output_request(output, "about", cfgr_kubernetes_apply(CFGR_CONFIG_MAP, name, "about", about));
 *         return NULL;
 *     }
 *
 *     CFGR_MODULE({"root", root, .description = "Gives every Namespace a ConfigMap."});
 *
 * Four rules hold everywhere:
 *
 * - What must be said is a parameter. What may be said follows by name, as the fields of a struct are initialised:
 *   `cfgr_output_request(output, "about", apply, .on_error = CFGR_CATCH_ERROR, .timeout_ms = 1500)`. What is not said is the default.
 * - What the SDK is given it copies, and what it gives lives until the call ends. There is nothing to free.
 * - A function that can fail returns an error or NULL, and the compiler warns when that is not looked at. CFGR_TRY hands it on.
 * - Texts are in UTF-8 and end with a zero byte. The character U+0000, which JSON can hold, is written "\xC0\x80".
 */
#ifndef CONFIGURATOR_SDK_H
#define CONFIGURATOR_SDK_H

/* Of this SDK. */
#define CONFIGURATOR_SDK_VERSION "0.1.0"

#include "configurator/error.h"
#include "configurator/handler.h"
#include "configurator/input.h"
#include "configurator/output.h"
#include "configurator/result.h"

#include "configurator/desired.h"
#include "configurator/plan.h"
#include "configurator/request.h"

#include "configurator/configstore.h"
#include "configurator/content.h"
#include "configurator/extension.h"
#include "configurator/http.h"
#include "configurator/kubernetes.h"
#include "configurator/secretstore.h"

#include "configurator/json.h"
#include "configurator/log.h"
#include "configurator/memory.h"
#include "configurator/panic.h"
#include "configurator/text.h"

#endif
