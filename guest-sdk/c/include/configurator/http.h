/*
 * Requests to HTTP endpoints.
 *
 * Any answer is a success, whatever its status; only a transport that fails is a fault. Redirects are not followed. Addresses that are not
 * public are refused unless the operator of the host lists the name.
 *
 *     cfgr_http_post("https://hooks.example.com/deployed",
 *                    .headers = CFGR_HEADERS({"content-type", "application/json"}), .body = "{\"app\": \"web\"}")
 */
#ifndef CONFIGURATOR_HTTP_H
#define CONFIGURATOR_HTTP_H

#include "compiler.h"

typedef struct cfgr_header {
    /* In lower case in answers. */
    const char *name;
    const char *value;
} cfgr_header;

typedef struct cfgr_headers {
    const cfgr_header *items;
    size_t count;
} cfgr_headers;

/* Headers for the options of a request. `host` is refused, since it follows from the URL; `content-length` must be that of the body. */
#define CFGR_HEADERS(...) \
    ((cfgr_headers){(const cfgr_header[]){__VA_ARGS__}, sizeof((const cfgr_header[]){__VA_ARGS__}) / sizeof(cfgr_header)})

/* What a request may say. */
typedef struct cfgr_http_options {
    cfgr_headers headers;
    /* A body of text. */
    const char *body;
    /* A body of any bytes, and how many they are. */
    const void *bytes;
    size_t size;
} cfgr_http_options;

/* A request to an HTTP endpoint; made by the macros below. */
typedef struct cfgr_http_request {
    const char *method;
    const char *url;
    cfgr_headers headers;
    /* NULL for none. */
    const void *body;
    size_t body_size;
} cfgr_http_request;

/*
 * A request of any method, in upper case. The URL holds no credentials, and writes its host plainly.
 *
 * The host adds an `Idempotency-Key` unless there is one: the same on every attempt of the request, also after a restart of the host.
 */
#define cfgr_http(method, url, ...) cfgr_http_with((method), (url), (cfgr_http_options){__VA_ARGS__})
#define cfgr_http_get(url, ...) cfgr_http_with("GET", (url), (cfgr_http_options){__VA_ARGS__})
#define cfgr_http_post(url, ...) cfgr_http_with("POST", (url), (cfgr_http_options){__VA_ARGS__})

/* What the macros call. */
cfgr_http_request cfgr_http_with(const char *method, const char *url, cfgr_http_options options);

#endif
