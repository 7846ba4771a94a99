#include "configurator/output.h"

#include "configurator/memory.h"
#include "configurator/text.h"
#include "internal.h"

/* Room for one more item in a list of an output. */
#define ROOM(list) ((list).items = cfgr_room((list).items, (list).count, &(list).capacity, sizeof *(list).items))

void cfgr_output_add_request(cfgr_output *output, cfgr_request request) {
    cfgr_requests_add(&output->requests, request);
}

void cfgr_output_pass(cfgr_output *output, const char *key, cfgr_json value) {
    const char *text = cfgr_json_text(value);
    ROOM(output->arguments);
    output->arguments.items[output->arguments.count++] = (cfgr_document){cfgr_copy(key), text == NULL ? "null" : text};
}

void cfgr_output_add_status(cfgr_output *output, cfgr_status_update update) {
    update.of = cfgr_copy_ref(update.of);
    ROOM(output->statuses);
    output->statuses.items[output->statuses.count++] = update;
}

void cfgr_output_add_event(cfgr_output *output, cfgr_event event) {
    event.reason = cfgr_copy(event.reason);
    event.message = cfgr_copy(event.message);
    event.of = cfgr_copy_ref(event.of);
    ROOM(output->events);
    output->events.items[output->events.count++] = event;
}

void cfgr_output_again(cfgr_output *output) {
    cfgr_output_again_after(output, 0);
}

void cfgr_output_again_after(cfgr_output *output, uint64_t milliseconds) {
    output->outcome = (cfgr_outcome){.kind = CFGR_AGAIN, .again_after_ms = milliseconds};
}

void cfgr_output_wait_for(cfgr_output *output, cfgr_wake wake) {
    wake.signals = cfgr_copy_names(wake.signals);
    cfgr_object_key *objects = cfgr_alloc_items(wake.objects.count, sizeof *objects);
    for (size_t i = 0; i < wake.objects.count; i++) {
        objects[i] = wake.objects.items[i];
    }
    wake.objects.items = objects;
    output->outcome = (cfgr_outcome){.kind = CFGR_WAIT, .wake = wake};
}

void cfgr_output_failed(cfgr_output *output, const cfgr_error *error) {
    output->requests.count = 0;
    output->reads.count = 0;
    output->outcome = (cfgr_outcome){.kind = CFGR_FAILED, .error = error};
}

void cfgr_output_stop(cfgr_output *output) {
    output->outcome = (cfgr_outcome){.kind = CFGR_STOP};
}

void cfgr_output_add_read(cfgr_output *output, cfgr_request request) {
    cfgr_requests_add(&output->reads, request);
    cfgr_output_again(output);
}

void cfgr_output_remove_from_plan(cfgr_output *output, const char *name) {
    ROOM(output->remove_from_plan);
    output->remove_from_plan.items[output->remove_from_plan.count++] = cfgr_copy(name);
}
