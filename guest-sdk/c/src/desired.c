#include "configurator/memory.h"
#include "configurator/output.h"
#include "configurator/text.h"
#include "internal.h"

static cfgr_groups copy_groups(cfgr_groups groups) {
    cfgr_names *copies = cfgr_alloc_items(groups.count, sizeof *copies);
    for (size_t i = 0; i < groups.count; i++) {
        copies[i] = cfgr_copy_names(groups.items[i]);
    }
    return (cfgr_groups){copies, groups.count};
}

void cfgr_output_desired_with(cfgr_output *output, cfgr_desired_options options) {
    options.termination_policy_at = cfgr_copy(options.termination_policy_at);
    options.provision = copy_groups(options.provision);
    options.update = copy_groups(options.update);
    options.terminate = copy_groups(options.terminate);
    output->desired.options = options;
    output->desired.is_said = true;
}

void cfgr_output_add_desired_entry(cfgr_output *output, cfgr_desired_entry entry) {
    entry.name = cfgr_copy(entry.name);
    entry.depends_on = cfgr_copy_names(entry.depends_on);
    entry.failed_when = cfgr_copy(entry.failed_when);
    entry.ignored_paths = cfgr_copy_names(entry.ignored_paths);
    cfgr_desired_entries *entries = &output->desired.entries;
    entries->items = cfgr_room(entries->items, entries->count, &entries->capacity, sizeof *entries->items);
    entries->items[entries->count++] = entry;
    output->desired.is_said = true;
}

void cfgr_output_add_pre_terminate(cfgr_output *output, cfgr_request request) {
    cfgr_requests_add(&output->desired.pre_terminate, request);
    output->desired.is_said = true;
}
