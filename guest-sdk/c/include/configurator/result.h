/* What a server answered to one request. */
#ifndef CONFIGURATOR_RESULT_H
#define CONFIGURATOR_RESULT_H

#include "compiler.h"
#include "error.h"
#include "http.h"
#include "json.h"

/* The server that a request went to. */
typedef enum cfgr_sink {
    CFGR_SINK_KUBERNETES,
    CFGR_SINK_CONFIGSTORE,
    CFGR_SINK_SECRETSTORE,
    CFGR_SINK_HTTP,
    CFGR_SINK_EXTENSION,
} cfgr_sink;

/* What went wrong, in the words that every sink shares. */
typedef enum cfgr_error_kind {
    CFGR_RETRY_EXCEED_LIMIT,
    CFGR_RESOURCE_GENERIC,
    CFGR_RESOURCE_NOT_FOUND,
    CFGR_RESOURCE_CONFLICT,
    CFGR_RESOURCE_MUTATION,
    CFGR_RESOURCE_PERMISSION,
    CFGR_UNSUPPORTED_RESOURCE_OPERATION,
    CFGR_API_SERVER_UNAVAILABLE,
    CFGR_CONFIGSTORE_UNAVAILABLE,
    CFGR_SECRETSTORE_UNAVAILABLE,
    CFGR_HTTP_UNAVAILABLE,
    CFGR_EXTENSION_UNAVAILABLE,
    CFGR_OUTCOME_UNKNOWN,
    CFGR_NOT_SENT,
} cfgr_error_kind;

typedef struct cfgr_request_error {
    cfgr_error_kind kind;
    const char *message;
    bool retryable;
    /* The server's own status: of HTTP, or the code of gRPC; 0: it has none. */
    uint16_t status;
} cfgr_request_error;

/* The answer of an HTTP endpoint. */
typedef struct cfgr_http_response {
    uint16_t status;
    cfgr_headers headers;
    /* Followed by a zero byte, which is not counted. */
    const char *body;
    size_t body_size;
} cfgr_http_response;

/* The value of the header of this name, in lower case; NULL where there is none. */
const char *cfgr_response_header(const cfgr_http_response *response, const char *name);

/* The body as a document. A fatal error where it is no JSON. */
CFGR_MUST_USE const cfgr_error *cfgr_response_json(const cfgr_http_response *response, cfgr_json *json);

typedef struct cfgr_result {
    /* The request that this answers, or the entry of a set; tells the results of a group apart. */
    const char *request_name;
    cfgr_sink sink;
    bool is_declarative;
    /* What the server returned, as texts: one document for a `get` or a write, one for each item of a `list`; none for HTTP. */
    const char *const *objects;
    size_t object_count;
    const char *created_timestamp;
    /* NULL for a declarative request that has not finished. */
    const char *finished_timestamp;
    /* NULL where the request succeeded. */
    const cfgr_request_error *error;
    /* NULL unless the request went to an HTTP endpoint. */
    const cfgr_http_response *response;
} cfgr_result;

/* Results of requests that share a `group_by`. */
typedef struct cfgr_results {
    const cfgr_result *items;
    size_t count;
} cfgr_results;

/* NULL where the request succeeded. Otherwise its error, with the name; fatal unless a retry may help. */
CFGR_MUST_USE const cfgr_error *cfgr_result_succeeded(const cfgr_result *result);

/*
 * The first document of the answer. When the request failed, its error, as cfgr_result_succeeded has it; fatal when the answer has no
 * document. Where absence is an ordinary answer, use cfgr_result_found.
 */
CFGR_MUST_USE const cfgr_error *cfgr_result_object(const cfgr_result *result, cfgr_json *object);

/* Every document of the answer, as an array: one for each item of a list. As cfgr_result_object, but no documents are an empty array. */
CFGR_MUST_USE const cfgr_error *cfgr_result_objects(const cfgr_result *result, cfgr_json *objects);

/*
 * The first document of a `get`, or absent where the server has no such object: for requests with CFGR_CATCH_ERROR, whose target may be
 * absent. An error when the request failed for another reason.
 */
CFGR_MUST_USE const cfgr_error *cfgr_result_found(const cfgr_result *result, cfgr_json *object);

/* What an HTTP endpoint answered, whatever its status. Fatal when the request was none to an HTTP endpoint. */
CFGR_MUST_USE const cfgr_error *cfgr_result_response(const cfgr_result *result, const cfgr_http_response **response);

#endif
