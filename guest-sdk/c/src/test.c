#ifndef __wasm__

#include "configurator_test.h"

#include <stdio.h>
#include <string.h>

#include "internal.h"

static int failures;

cfgr_json cfgr_test_json(const char *text) {
    size_t size = strlen(text);
    char *quoted = cfgr_alloc(size + 1);
    for (size_t i = 0; i < size; i++) {
        quoted[i] = text[i] == '\'' ? '"' : text[i];
    }
    cfgr_json value = cfgr_parse_kept(quoted);
    if (cfgr_is_absent(value)) {
        cfgr_panic(cfgr_concat("this is no JSON: ", quoted));
    }
    return value;
}

/* As a document of an input: what is absent is null. */
static const char *document(cfgr_json value) {
    const char *text = cfgr_json_text(value);
    return text == NULL ? "null" : text;
}

static cfgr_input input_of(const cfgr_json *objects, size_t count) {
    cfgr_watched *watched = cfgr_alloc_items(count, sizeof *watched);
    for (size_t i = 0; i < count; i++) {
        watched[i] = (cfgr_watched){.object = document(objects[i]), .event = CFGR_MODIFIED};
    }
    return (cfgr_input){
        .objects = watched,
        .object_count = count,
        .context =
            {
                .configurator = "test",
                .phase = "root",
                .node = "root",
                .entry = 1,
                .attempt = 1,
                .now = "2026-01-01T00:00:00.000Z",
                .parameters = "{}",
                .run_id = "run",
            },
    };
}

cfgr_input cfgr_test_input(cfgr_json object) {
    return input_of(&object, 1);
}

cfgr_input cfgr_test_batch(cfgr_json objects) {
    CFGR_ASSERT(objects.type == CFGR_TYPE_ARRAY && objects.count > 0);
    cfgr_input input = input_of(objects.items, objects.count);
    input.is_batch = true;
    return input;
}

void cfgr_test_event(cfgr_input *input, cfgr_watch_event event) {
    cfgr_watched *watched = cfgr_alloc_items(input->object_count, sizeof *watched);
    for (size_t i = 0; i < input->object_count; i++) {
        watched[i] = (cfgr_watched){.object = input->objects[i].object, .event = event};
    }
    input->objects = watched;
}

static cfgr_results copy_results(const cfgr_result *results, size_t count) {
    cfgr_result *copies = cfgr_alloc_items(count, sizeof *copies);
    for (size_t i = 0; i < count; i++) {
        copies[i] = results[i];
    }
    return (cfgr_results){copies, count};
}

static void add_entry(cfgr_result_entries *entries, cfgr_result_entry entry) {
    cfgr_result_entry *items = cfgr_alloc_items(entries->count + 1, sizeof *items);
    for (size_t i = 0; i < entries->count; i++) {
        items[i] = entries->items[i];
    }
    items[entries->count] = entry;
    entries->items = items;
    entries->count++;
}

static void add_document(cfgr_documents *documents, const char *name, const char *text) {
    cfgr_document *items = cfgr_alloc_items(documents->count + 1, sizeof *items);
    for (size_t i = 0; i < documents->count; i++) {
        items[i] = documents->items[i];
    }
    items[documents->count] = (cfgr_document){cfgr_copy(name), text};
    documents->items = items;
    documents->count++;
}

void cfgr_test_add_result(cfgr_input *input, cfgr_result result) {
    add_entry(&input->results, (cfgr_result_entry){.key = result.request_name, .results = copy_results(&result, 1)});
}

void cfgr_test_add_group_of(cfgr_input *input, const char *group_by, const cfgr_result *results, size_t count) {
    add_entry(&input->results,
              (cfgr_result_entry){.key = cfgr_copy(group_by), .is_group = true, .results = copy_results(results, count)});
}

void cfgr_test_add_argument(cfgr_input *input, const char *key, cfgr_json value) {
    add_document(&input->arguments, key, document(value));
}

void cfgr_test_add_arguments_of(cfgr_input *input, const cfgr_output *previous) {
    for (size_t i = 0; i < previous->arguments.count; i++) {
        add_document(&input->arguments, previous->arguments.items[i].name, previous->arguments.items[i].text);
    }
}

void cfgr_test_parameters(cfgr_input *input, cfgr_json parameters) {
    input->context.parameters = document(parameters);
}

void cfgr_test_after_with(cfgr_input *input, const cfgr_output *previous, const cfgr_result *answers, size_t count) {
    cfgr_handler_state *last = cfgr_alloc(sizeof *last);
    last->data = cfgr_json_text(previous->data);
    for (size_t i = 0; i < count; i++) {
        add_entry(&last->results, (cfgr_result_entry){.key = answers[i].request_name, .results = copy_results(&answers[i], 1)});
    }
    input->last = last;
    input->context.entry++;
    input->context.cause = (cfgr_cause){.kind = CFGR_CAUSE_AGAIN};
}

void cfgr_test_add_output(cfgr_input *input, const char *path, cfgr_json output) {
    add_document(&input->outputs, path, document(output));
}

cfgr_result cfgr_test_answered(const char *request_name, cfgr_sink sink, cfgr_json objects) {
    CFGR_ASSERT(objects.type == CFGR_TYPE_ARRAY);
    const char **texts = cfgr_alloc_items(objects.count, sizeof *texts);
    for (size_t i = 0; i < objects.count; i++) {
        texts[i] = document(objects.items[i]);
    }
    return (cfgr_result){
        .request_name = cfgr_copy(request_name),
        .sink = sink,
        .objects = texts,
        .object_count = objects.count,
        .created_timestamp = "2026-01-01T00:00:00.000Z",
        .finished_timestamp = "2026-01-01T00:00:00.000Z",
    };
}

cfgr_result cfgr_test_responded(const char *request_name, uint16_t status, const char *body) {
    cfgr_http_response *response = cfgr_alloc(sizeof *response);
    *response = (cfgr_http_response){.status = status, .body = cfgr_copy(body), .body_size = strlen(body)};
    cfgr_result result = cfgr_test_answered(request_name, CFGR_SINK_HTTP, CFGR_ARRAY());
    result.response = response;
    return result;
}

/* The contract's table. */
static bool is_retryable(cfgr_error_kind kind) {
    switch (kind) {
    case CFGR_RESOURCE_NOT_FOUND:
    case CFGR_RESOURCE_CONFLICT:
    case CFGR_RESOURCE_MUTATION:
    case CFGR_API_SERVER_UNAVAILABLE:
    case CFGR_CONFIGSTORE_UNAVAILABLE:
    case CFGR_SECRETSTORE_UNAVAILABLE:
    case CFGR_HTTP_UNAVAILABLE:
    case CFGR_EXTENSION_UNAVAILABLE:
        return true;
    case CFGR_RETRY_EXCEED_LIMIT:
    case CFGR_RESOURCE_GENERIC:
    case CFGR_RESOURCE_PERMISSION:
    case CFGR_UNSUPPORTED_RESOURCE_OPERATION:
    case CFGR_OUTCOME_UNKNOWN:
    case CFGR_NOT_SENT:
        return false;
    }
    return false;
}

cfgr_result cfgr_test_failed(const char *request_name, cfgr_sink sink, cfgr_error_kind kind, const char *message) {
    cfgr_request_error *error = cfgr_alloc(sizeof *error);
    *error = (cfgr_request_error){.kind = kind, .message = cfgr_copy(message), .retryable = is_retryable(kind)};
    cfgr_result result = cfgr_test_answered(request_name, sink, CFGR_ARRAY());
    result.error = error;
    return result;
}

void cfgr_test_expect(bool holds, const char *condition, const char *file, int line) {
    if (!holds) {
        fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, condition);
        failures++;
    }
}

void cfgr_test_expect_text(const char *actual, const char *expected, const char *file, int line) {
    if (!cfgr_equal(actual, expected)) {
        fprintf(stderr, "%s:%d: expected\n%s\nbut it is\n%s\n", file, line, expected == NULL ? "(NULL)" : expected,
                actual == NULL ? "(NULL)" : actual);
        failures++;
    }
}

int cfgr_test_end(void) {
    cfgr_free_all();
    return failures == 0 ? 0 : 1;
}

#endif
