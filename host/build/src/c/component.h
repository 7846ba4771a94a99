/* Conversions between the SDK's types and the types that are made of the contract: `_in` from the host, `_out` to the host. */
#ifndef COMPONENT_H
#define COMPONENT_H

#include "configurator.h"

#include <configurator_sdk.h>

/* --- Texts --- */

/* Returns the SDK's text. A U+0000 becomes the two bytes with which the SDK writes it. */
const char *cfgr_text_in(configurator_string_t text);

/* Returns the text of a document, which has no U+0000. */
static inline const char *cfgr_document_in(configurator_string_t text) {
    return text.len == 0 ? "" : (const char *)text.ptr;
}

/* Returns the contract's text. NULL becomes an empty one. */
configurator_string_t cfgr_text_out(const char *text);

/* Converts an option of a text. None becomes NULL. */
#define TEXT_IN(option) ((option).is_some ? cfgr_text_in((option).val) : NULL)

/* Converts an option of a document. None becomes NULL. */
#define DOCUMENT_IN(option) ((option).is_some ? cfgr_document_in((option).val) : NULL)

/* Converts a text or a document to an option. NULL becomes none. */
#define TEXT_OUT(option, text)                          \
    do {                                                \
        const char *option_text_ = (text);              \
        (option).is_some = option_text_ != NULL;        \
        if (option_text_ != NULL) {                     \
            (option).val = cfgr_text_out(option_text_); \
        }                                               \
    } while (0)

/* Converts an option of a number. None becomes 0. */
#define NUMBER_IN(option) ((option).is_some ? (option).val : 0)

/* Converts a number to an option. 0 becomes none. */
#define NUMBER_OUT(option, number)        \
    do {                                  \
        (option).is_some = (number) != 0; \
        (option).val = (number);          \
    } while (0)

/* Converts an option of an enum to the SDK's, whose 0 is unsaid. In the contract the values begin with 0. */
#define ENUM_IN(option) ((option).is_some ? (option).val + 1 : 0)

/* Converts an enum of the SDK whose 0 is unsaid to an option. */
#define ENUM_OUT(option, value)                                   \
    do {                                                          \
        (option).is_some = (value) != 0;                          \
        (option).val = (uint8_t)((value) != 0 ? (value) - 1 : 0); \
    } while (0)

cfgr_names cfgr_names_in(configurator_list_string_t list);
configurator_list_string_t cfgr_names_out(cfgr_names names);

/* --- Requests --- */

/* These convert an operation of the config store, or a transaction. */
cfgr_operation cfgr_config_in(const configurator_handler_requests_operation_t *from);
void cfgr_config_out(const cfgr_config *from, configurator_handler_requests_operation_t *to);
void cfgr_transaction_out(const cfgr_transaction *from, configurator_handler_requests_operation_t *to);

cfgr_headers cfgr_headers_in(configurator_list_tuple2_string_string_t list);

/* Each interface has option types of its own, so these convert what is inside; the macros convert the options. */
cfgr_readiness cfgr_readiness_in(const configurator_handler_requests_readiness_t *from);
configurator_handler_requests_readiness_t cfgr_readiness_out(cfgr_readiness from);
configurator_handler_types_object_ref_t cfgr_ref_out(cfgr_object_ref from);

#define READINESS_IN(option) ((option).is_some ? cfgr_readiness_in(&(option).val) : (cfgr_readiness){0})

#define READINESS_OUT(option, readiness)                              \
    do {                                                              \
        (option).is_some = (readiness).kind != CFGR_READINESS_UNSAID; \
        (option).val = cfgr_readiness_out(readiness);                 \
    } while (0)

#define REF_OUT(option, ref)                   \
    do {                                       \
        (option).is_some = (ref).name != NULL; \
        (option).val = cfgr_ref_out(ref);      \
    } while (0)

cfgr_requests cfgr_requests_in(const configurator_handler_requests_resource_request_t *from, size_t count);
/* Returns `from->count` requests. */
configurator_handler_requests_resource_request_t *cfgr_requests_out(const cfgr_requests *from);

/* --- Sets, inputs and outputs --- */

cfgr_desired_set cfgr_desired_set_in(const configurator_handler_desired_desired_set_t *from);
configurator_handler_desired_desired_set_t cfgr_desired_set_out(const cfgr_desired_set *from);

cfgr_input cfgr_input_in(const exports_configurator_handler_handler_handler_input_t *from);

exports_configurator_handler_handler_handler_error_t cfgr_error_out(const cfgr_error *from);

exports_configurator_handler_handler_handler_output_t cfgr_output_out(const cfgr_output *from);

#endif
