/* Outputs. */
#include "component.h"

exports_configurator_handler_handler_handler_error_t cfgr_error_out(const cfgr_error *from) {
    exports_configurator_handler_handler_handler_error_t to = {.message = cfgr_text_out(from->message), .fatal = from->fatal};
    NUMBER_OUT(to.retry_after, from->retry_after_ms);
    TEXT_OUT(to.code, from->code);
    return to;
}

static void wake_out(const cfgr_wake *from, exports_configurator_handler_handler_wake_t *to) {
    exports_configurator_handler_handler_object_key_t *keys = cfgr_alloc_items(from->objects.count, sizeof *keys);
    for (size_t i = 0; i < from->objects.count; i++) {
        const cfgr_object_key *key = &from->objects.items[i];
        keys[i] = (exports_configurator_handler_handler_object_key_t){
            .group = cfgr_text_out(key->group),
            .version = cfgr_text_out(key->version),
            .plural = cfgr_text_out(key->plural),
            .namespace_ = cfgr_text_out(key->namespace),
            .name = cfgr_text_out(key->name),
        };
    }
    NUMBER_OUT(to->after, from->after_ms);
    to->signals = cfgr_names_out(from->signals);
    to->objects = (exports_configurator_handler_handler_list_object_key_t){keys, from->objects.count};
}

static exports_configurator_handler_handler_outcome_t outcome_out(const cfgr_outcome *from) {
    exports_configurator_handler_handler_outcome_t to = {.tag = (uint8_t)from->kind};
    switch (from->kind) {
    case CFGR_DONE:
    case CFGR_STOP:
        break;
    case CFGR_AGAIN:
        NUMBER_OUT(to.val.again, from->again_after_ms);
        break;
    case CFGR_WAIT:
        wake_out(&from->wake, &to.val.wait);
        break;
    case CFGR_FAILED:
        if (from->error == NULL) {
            cfgr_panic_at("an output has failed without an error", NULL, 0);
        }
        to.val.failed = cfgr_error_out(from->error);
        break;
    }
    return to;
}

static exports_configurator_handler_handler_list_tuple2_string_json_t arguments_out(const cfgr_output *from) {
    exports_configurator_handler_handler_tuple2_string_json_t *items = cfgr_alloc_items(from->arguments.count, sizeof *items);
    for (size_t i = 0; i < from->arguments.count; i++) {
        items[i].f0 = cfgr_text_out(from->arguments.items[i].name);
        items[i].f1 = cfgr_text_out(from->arguments.items[i].text);
    }
    return (exports_configurator_handler_handler_list_tuple2_string_json_t){items, from->arguments.count};
}

static exports_configurator_handler_handler_list_status_update_t statuses_out(const cfgr_output *from) {
    exports_configurator_handler_handler_status_update_t *items = cfgr_alloc_items(from->statuses.count, sizeof *items);
    for (size_t i = 0; i < from->statuses.count; i++) {
        REF_OUT(items[i].of, from->statuses.items[i].of);
        items[i].status = cfgr_text_out(from->statuses.items[i].status);
    }
    return (exports_configurator_handler_handler_list_status_update_t){items, from->statuses.count};
}

static exports_configurator_handler_handler_list_event_t events_out(const cfgr_output *from) {
    exports_configurator_handler_handler_event_t *items = cfgr_alloc_items(from->events.count, sizeof *items);
    for (size_t i = 0; i < from->events.count; i++) {
        REF_OUT(items[i].of, from->events.items[i].of);
        items[i].event_type = (uint8_t)from->events.items[i].type;
        items[i].reason = cfgr_text_out(from->events.items[i].reason);
        items[i].message = cfgr_text_out(from->events.items[i].message);
    }
    return (exports_configurator_handler_handler_list_event_t){items, from->events.count};
}

exports_configurator_handler_handler_handler_output_t cfgr_output_out(const cfgr_output *from) {
    exports_configurator_handler_handler_handler_output_t to = {
        .requests = {.resource_requests = {cfgr_requests_out(&from->requests), from->requests.count}},
        .pass_through_args = arguments_out(from),
        .outcome = outcome_out(&from->outcome),
        .statuses = statuses_out(from),
        .events = events_out(from),
        .remove_from_plan = cfgr_names_out((cfgr_names){from->remove_from_plan.items, from->remove_from_plan.count}),
        .reads = {cfgr_requests_out(&from->reads), from->reads.count},
    };
    ENUM_OUT(to.requests.execute_strategy, from->execute_strategy);
    ENUM_OUT(to.requests.batch_error_strategy, from->batch_error_strategy);
    TEXT_OUT(to.next, from->next_phase);
    TEXT_OUT(to.data, cfgr_json_text(from->data));
    TEXT_OUT(to.output, cfgr_json_text(from->output));
    TEXT_OUT(to.details, cfgr_json_text(from->details));
    to.progress.is_some = from->progress.message != NULL;
    to.progress.val.percent = from->progress.percent > 100 ? 100 : from->progress.percent;
    to.progress.val.message = cfgr_text_out(from->progress.message);
    to.desired.is_some = from->desired.is_said;
    if (to.desired.is_some) {
        to.desired.val = cfgr_desired_set_out(&from->desired);
    }
    return to;
}
