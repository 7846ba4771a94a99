/* Inputs. */
#include "component.h"

static cfgr_result result_in(const configurator_handler_requests_request_result_t *from) {
    const char **objects = cfgr_alloc_items(from->query_objects.len, sizeof *objects);
    for (size_t i = 0; i < from->query_objects.len; i++) {
        objects[i] = cfgr_document_in(from->query_objects.ptr[i]);
    }
    cfgr_request_error *error = NULL;
    if (from->error.is_some) {
        error = cfgr_alloc(sizeof *error);
        *error = (cfgr_request_error){
            .kind = (cfgr_error_kind)from->error.val.kind,
            .message = cfgr_text_in(from->error.val.message),
            .retryable = from->error.val.retryable,
            .status = NUMBER_IN(from->error.val.status),
        };
    }
    cfgr_http_response *response = NULL;
    if (from->http_response.is_some) {
        response = cfgr_alloc(sizeof *response);
        *response = (cfgr_http_response){
            .status = from->http_response.val.status,
            .headers = cfgr_headers_in(from->http_response.val.headers),
            .body = from->http_response.val.body.len == 0 ? "" : (const char *)from->http_response.val.body.ptr,
            .body_size = from->http_response.val.body.len,
        };
    }
    return (cfgr_result){
        .request_name = cfgr_text_in(from->request_name),
        .sink = (cfgr_sink)from->request_sink,
        .is_declarative = from->is_declarative,
        .objects = objects,
        .object_count = from->query_objects.len,
        .created_timestamp = cfgr_text_in(from->created_timestamp),
        .finished_timestamp = TEXT_IN(from->finished_timestamp),
        .error = error,
        .response = response,
    };
}

static cfgr_results results_in(const configurator_handler_requests_request_result_t *from, size_t count) {
    cfgr_result *items = cfgr_alloc_items(count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        items[i] = result_in(&from[i]);
    }
    return (cfgr_results){items, count};
}

static cfgr_result_entries entries_in(exports_configurator_handler_handler_list_tuple2_string_result_entry_t list) {
    cfgr_result_entry *items = cfgr_alloc_items(list.len, sizeof *items);
    for (size_t i = 0; i < list.len; i++) {
        const exports_configurator_handler_handler_result_entry_t *entry = &list.ptr[i].f1;
        items[i].key = cfgr_text_in(list.ptr[i].f0);
        items[i].is_group = entry->tag == CONFIGURATOR_HANDLER_REQUESTS_RESULT_ENTRY_GROUP;
        items[i].results =
            items[i].is_group ? results_in(entry->val.group.ptr, entry->val.group.len) : results_in(&entry->val.one, 1);
    }
    return (cfgr_result_entries){items, list.len};
}

static cfgr_documents documents_in(exports_configurator_handler_handler_list_tuple2_string_json_t list) {
    cfgr_document *items = cfgr_alloc_items(list.len, sizeof *items);
    for (size_t i = 0; i < list.len; i++) {
        items[i] = (cfgr_document){cfgr_text_in(list.ptr[i].f0), cfgr_document_in(list.ptr[i].f1)};
    }
    return (cfgr_documents){items, list.len};
}

static const cfgr_error *error_in(const exports_configurator_handler_handler_handler_error_t *from) {
    cfgr_error *error = cfgr_alloc(sizeof *error);
    *error = (cfgr_error){
        .message = cfgr_text_in(from->message),
        .fatal = from->fatal,
        .retry_after_ms = NUMBER_IN(from->retry_after),
        .code = TEXT_IN(from->code),
    };
    return error;
}

static const cfgr_handler_state *state_in(const exports_configurator_handler_handler_handler_state_t *from) {
    cfgr_handler_state *state = cfgr_alloc(sizeof *state);
    *state = (cfgr_handler_state){
        .start_time = TEXT_IN(from->start_time),
        .end_time = TEXT_IN(from->end_time),
        .done = from->done,
        .failed = from->failed,
        .fatal = from->fatal,
        .error = from->error.is_some ? error_in(&from->error.val) : NULL,
        .data = DOCUMENT_IN(from->data),
        .results = entries_in(from->request_results),
    };
    return state;
}

static const cfgr_plan *plan_in(const exports_configurator_handler_handler_plan_t *from) {
    const configurator_handler_requests_requests_t *requests = &from->requests;
    cfgr_plan *plan = cfgr_alloc(sizeof *plan);
    plan->requests = cfgr_requests_in(requests->resource_requests.ptr, requests->resource_requests.len);
    plan->execute_strategy = ENUM_IN(requests->execute_strategy);
    plan->batch_error_strategy = ENUM_IN(requests->batch_error_strategy);
    if (from->desired.is_some) {
        plan->desired = cfgr_desired_set_in(&from->desired.val);
    }
    return plan;
}

static cfgr_cause cause_in(const exports_configurator_handler_handler_cause_t *from) {
    cfgr_cause cause = {.kind = (cfgr_cause_kind)from->tag};
    if (from->tag == EXPORTS_CONFIGURATOR_HANDLER_HANDLER_CAUSE_SIGNAL) {
        cause.signal = cfgr_text_in(from->val.signal.name);
        cause.signal_data = DOCUMENT_IN(from->val.signal.data);
    } else if (from->tag == EXPORTS_CONFIGURATOR_HANDLER_HANDLER_CAUSE_CHANGED) {
        cause.changed = (cfgr_object_key){
            .group = cfgr_text_in(from->val.changed.group),
            .version = cfgr_text_in(from->val.changed.version),
            .plural = cfgr_text_in(from->val.changed.plural),
            .namespace = cfgr_text_in(from->val.changed.namespace_),
            .name = cfgr_text_in(from->val.changed.name),
        };
    }
    return cause;
}

cfgr_input cfgr_input_in(const exports_configurator_handler_handler_handler_input_t *from) {
    bool is_batch = from->resource_object.tag == EXPORTS_CONFIGURATOR_HANDLER_HANDLER_RESOURCE_OBJECT_BATCH;
    size_t count = is_batch ? from->resource_object.val.batch.len : 1;
    const exports_configurator_handler_handler_watched_object_t *objects =
        is_batch ? from->resource_object.val.batch.ptr : &from->resource_object.val.one;
    cfgr_watched *watched = cfgr_alloc_items(count, sizeof *watched);
    for (size_t i = 0; i < count; i++) {
        watched[i] = (cfgr_watched){cfgr_document_in(objects[i].object), (cfgr_watch_event)objects[i].event};
    }
    return (cfgr_input){
        .is_batch = is_batch,
        .objects = watched,
        .object_count = count,
        .results = entries_in(from->request_results),
        .arguments = documents_in(from->pass_through_args),
        .last = from->last.is_some ? state_in(&from->last.val) : NULL,
        .outputs = documents_in(from->outputs),
        .plan = from->plan.is_some ? plan_in(&from->plan.val) : NULL,
        .context =
            {
                .configurator = cfgr_text_in(from->context.configurator),
                .phase = cfgr_text_in(from->context.phase),
                .node = cfgr_text_in(from->context.node),
                .entry = from->context.entry,
                .attempt = from->context.attempt,
                .cause = cause_in(&from->context.cause),
                .now = cfgr_text_in(from->context.now),
                .seed = from->context.seed,
                .parameters = cfgr_document_in(from->context.parameters),
                .run_id = cfgr_text_in(from->context.run_id),
            },
    };
}
