/* What a handler is given beside its object. */
#include "conformance.h"

/* The kind in the contract's spelling. */
static const char *kind_of(cfgr_error_kind kind) {
    switch (kind) {
    case CFGR_RETRY_EXCEED_LIMIT:
        return "retry-exceed-limit";
    case CFGR_RESOURCE_GENERIC:
        return "resource-generic";
    case CFGR_RESOURCE_NOT_FOUND:
        return "resource-not-found";
    case CFGR_RESOURCE_CONFLICT:
        return "resource-conflict";
    case CFGR_RESOURCE_MUTATION:
        return "resource-mutation";
    case CFGR_RESOURCE_PERMISSION:
        return "resource-permission";
    case CFGR_UNSUPPORTED_RESOURCE_OPERATION:
        return "unsupported-resource-operation";
    case CFGR_API_SERVER_UNAVAILABLE:
        return "api-server-unavailable";
    case CFGR_CONFIGSTORE_UNAVAILABLE:
        return "configstore-unavailable";
    case CFGR_SECRETSTORE_UNAVAILABLE:
        return "secretstore-unavailable";
    case CFGR_HTTP_UNAVAILABLE:
        return "http-unavailable";
    case CFGR_EXTENSION_UNAVAILABLE:
        return "extension-unavailable";
    case CFGR_OUTCOME_UNKNOWN:
        return "outcome-unknown";
    case CFGR_NOT_SENT:
        return "not-sent";
    }
    return "";
}

static cfgr_json told_error(const cfgr_request_error *error) {
    if (error == NULL) {
        return cfgr_null();
    }
    return CFGR_OBJECT(
        {"kind", cfgr_string(kind_of(error->kind))},
        {"message", cfgr_string(error->message)},
        {"retryable", cfgr_bool(error->retryable)},
        {"status", error->status == 0 ? cfgr_null() : cfgr_integer(error->status)});
}

static cfgr_json told_response(const cfgr_http_response *response) {
    if (response == NULL) {
        return cfgr_null();
    }
    return CFGR_OBJECT(
        {"status", cfgr_integer(response->status)},
        {"type", cfgr_string(cfgr_response_header(response, "Content-Type"))},
        {"body", cfgr_string(response->body)});
}

/* What a result says. */
static cfgr_json told(const cfgr_result *result) {
    cfgr_json objects;
    if (cfgr_result_objects(result, &objects) != NULL) {
        objects = CFGR_ARRAY();
    }
    return CFGR_OBJECT(
        {"name", cfgr_string(result->request_name)},
        {"declarative", cfgr_bool(result->is_declarative)},
        {"objects", objects},
        {"error", told_error(result->error)},
        {"response", told_response(result->response)},
        {"created", cfgr_string(result->created_timestamp)},
        {"finished", cfgr_string(result->finished_timestamp)});
}

const cfgr_error *results(const cfgr_input *input, cfgr_output *output) {
    cfgr_items all = {0};
    for (size_t i = 0; i < input->results.count; i++) {
        cfgr_results group = input->results.items[i].results;
        for (size_t j = 0; j < group.count; j++) {
            cfgr_items_add(&all, told(&group.items[j]));
        }
    }
    const cfgr_result *wanted;
    cfgr_json found;
    CFGR_TRY(cfgr_input_result(input, "wanted", &wanted));
    CFGR_TRY(cfgr_result_found(wanted, &found));
    cfgr_output_pass(output, "all", cfgr_array(&all));
    cfgr_output_pass(output, "found", cfgr_bool(!cfgr_is_absent(found)));
    cfgr_output_pass(output, "absent", cfgr_bool(cfgr_input_find_result(input, "absent") != NULL));
    return NULL;
}

static cfgr_json names(cfgr_results group) {
    cfgr_items items = {0};
    for (size_t i = 0; i < group.count; i++) {
        cfgr_items_add(&items, cfgr_string(group.items[i].request_name));
    }
    return cfgr_array(&items);
}

const cfgr_error *groups(const cfgr_input *input, cfgr_output *output) {
    cfgr_results pods;
    CFGR_TRY(cfgr_input_group(input, "pods", &pods));
    int64_t failed = 0;
    for (size_t i = 0; i < pods.count; i++) {
        failed += pods.items[i].error != NULL ? 1 : 0;
    }
    cfgr_output_pass(output, "pods", names(pods));
    cfgr_output_pass(output, "failed", cfgr_integer(failed));
    cfgr_output_pass(output, "none", names(cfgr_input_find_group(input, "none")));
    return NULL;
}

/* Reads the result `asked`, as `how` says. */
static const cfgr_error *read_result(const cfgr_input *input, const char *how, cfgr_json *read) {
    const cfgr_result *asked;
    CFGR_TRY(cfgr_input_result(input, "asked", &asked));
    if (cfgr_equal(how, "succeeded")) {
        *read = cfgr_bool(true);
        return cfgr_result_succeeded(asked);
    }
    if (cfgr_equal(how, "object")) {
        return cfgr_result_object(asked, read);
    }
    if (cfgr_equal(how, "objects")) {
        return cfgr_result_objects(asked, read);
    }
    const cfgr_http_response *response;
    CFGR_TRY(cfgr_result_response(asked, &response));
    return cfgr_response_json(response, read);
}

/* Reads the result or the group `asked`, or why the object is in the run, as the parameter `read` says. */
const cfgr_error *reads(const cfgr_input *input, cfgr_output *output) {
    static const char *const events[] = {"added", "modified", "deleted", "resync"};
    const char *how;
    cfgr_json read;
    CFGR_TRY(parameter(input, "read", &how));
    if (cfgr_equal(how, "group")) {
        cfgr_results group;
        CFGR_TRY(cfgr_input_group(input, "asked", &group));
        read = names(group);
    } else if (cfgr_equal(how, "answers")) {
        read = names(cfgr_input_answers(input, "asked"));
    } else if (cfgr_equal(how, "event")) {
        read = cfgr_string(events[cfgr_input_event(input)]);
    } else {
        CFGR_TRY(read_result(input, how, &read));
    }
    cfgr_output_pass(output, "read", read);
    return NULL;
}

const cfgr_error *arguments(const cfgr_input *input, cfgr_output *output) {
    cfgr_json argument;
    uint64_t count = 0;
    CFGR_TRY(cfgr_input_argument(input, "count", &argument));
    if (!cfgr_as_uint64(argument, &count)) {
        return cfgr_fatal("the argument `count` is no number");
    }
    cfgr_output_pass(output, "count", cfgr_unsigned(count + 1));
    cfgr_output_pass(output, "raw", cfgr_raw(cfgr_input_find_argument(input, "raw")));
    return NULL;
}

const cfgr_error *context(const cfgr_input *input, cfgr_output *output) {
    static const char *const causes[] = {"entered", "retry", "again", "timer", "signal", "changed", "recovered"};
    const cfgr_context *given = &input->context;
    const cfgr_object_key *key = &given->cause.changed;
    cfgr_json detail = cfgr_null();
    if (given->cause.kind == CFGR_CAUSE_SIGNAL) {
        cfgr_json data = given->cause.signal_data == NULL ? cfgr_null() : cfgr_parse(given->cause.signal_data);
        detail = CFGR_OBJECT({"name", cfgr_string(given->cause.signal)}, {"data", data});
    } else if (given->cause.kind == CFGR_CAUSE_CHANGED) {
        detail = CFGR_ARRAY(cfgr_string(key->group), cfgr_string(key->version), cfgr_string(key->plural),
                            cfgr_string(key->namespace), cfgr_string(key->name));
    }
    output->data = CFGR_OBJECT(
        {"configurator", cfgr_string(given->configurator)},
        {"phase", cfgr_string(given->phase)},
        {"node", cfgr_string(given->node)},
        {"entry", cfgr_integer(given->entry)},
        {"attempt", cfgr_integer(given->attempt)},
        {"cause", cfgr_string(causes[given->cause.kind])},
        {"detail", detail},
        {"now", cfgr_string(given->now)},
        {"seed", cfgr_string(cfgr_decimal_unsigned(given->seed))},
        {"runId", cfgr_string(given->run_id)},
        {"parameters", cfgr_input_parameters(input)});
    return NULL;
}

const cfgr_error *state(const cfgr_input *input, cfgr_output *output) {
    uint64_t count = 0;
    cfgr_as_uint64(cfgr_get(cfgr_input_notes(input), "count"), &count);
    cfgr_members details = {0};
    if (input->last != NULL) {
        const cfgr_error *last = input->last->error;
        cfgr_members_add(&details, "failed", cfgr_bool(input->last->failed));
        cfgr_members_add(&details, "fatal", cfgr_bool(input->last->fatal));
        cfgr_members_add(&details, "error", cfgr_string(last == NULL ? NULL : last->message));
    }
    const cfgr_result *asked = cfgr_input_answer(input, "ask");
    cfgr_json answer = cfgr_null();
    if (asked != NULL) {
        CFGR_TRY(cfgr_result_object(asked, &answer));
    }
    const char *path;
    cfgr_json step;
    CFGR_TRY(parameter(input, "step", &path));
    CFGR_TRY(cfgr_input_output_of(input, path, &step));
    output->data = CFGR_OBJECT({"count", cfgr_unsigned(count + 1)});
    output->output = CFGR_OBJECT({"answer", answer}, {"step", step});
    output->details = cfgr_object(&details);
    output->progress = (cfgr_progress){50, "half"};
    cfgr_output_again(output);
    return NULL;
}
