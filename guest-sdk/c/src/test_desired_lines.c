/* A set in lines, for tests. An entry has one line: name, content, and the options that differ from the defaults. */
#ifndef __wasm__

#include "test_lines.h"

static void config(cfgr_buffer *line, const cfgr_config_content *content) {
    cfgr_buffer_text(line, "config ");
    switch (content->kind) {
    case CFGR_CONFIG_ENTRY:
        cfgr_line_entry(line, &content->entry);
        break;
    case CFGR_CONFIG_APP_CONF:
        cfgr_line_app_conf(line, &content->app_conf);
        break;
    case CFGR_CONFIG_BASIC:
        cfgr_line_basic(line, content->basic);
        break;
    case CFGR_CONFIG_TWO_LAYERS:
        cfgr_line_two_layers(line, &content->two_layers);
        break;
    }
    cfgr_line_text(line, " = ", content->value, "");
    cfgr_line_text(line, ", partition ", content->partition, "");
}

static void secret(cfgr_buffer *line, const cfgr_secret_content *content) {
    cfgr_line_text(line, "secret ", content->name, content->value == NULL ? "" : " = (a value)");
    cfgr_line_text(line, ", partition ", content->partition, "");
}

static void entry_line(cfgr_buffer *line, const cfgr_desired_entry *entry) {
    static const char *const on_existing[] = {NULL, "refuse", "adopt", "create-only"};
    static const char *const on_conflict[] = {NULL, "fail", "force"};
    static const char *const on_immutable[] = {NULL, "fail", "recreate"};
    static const char *const on_delete[] = {NULL, "with-owner", "retain", "only-under-wipe-out"};
    cfgr_line_text(line, "desired ", entry->name, ": ");
    switch (entry->content.kind) {
    case CFGR_CONTENT_KUBERNETES:
        cfgr_line_text(line, "kubernetes ", entry->content.kubernetes, "");
        break;
    case CFGR_CONTENT_CONFIG:
        config(line, &entry->content.config);
        break;
    case CFGR_CONTENT_SECRET:
        secret(line, &entry->content.secret);
        break;
    }
    cfgr_line_names(line, ", depends-on ", entry->depends_on);
    cfgr_line_readiness(line, entry->ready_when);
    cfgr_line_text(line, ", failed-when ", entry->failed_when, "");
    cfgr_line_timeout(line, entry->timeout_ms);
    cfgr_line_text(line, ", on-existing ", on_existing[entry->on_existing], "");
    cfgr_line_text(line, ", on-conflict ", on_conflict[entry->on_conflict], "");
    cfgr_line_text(line, ", on-immutable ", on_immutable[entry->on_immutable], "");
    cfgr_line_names(line, ", ignores ", entry->ignored_paths);
    cfgr_line_text(line, ", on-delete ", on_delete[entry->on_delete], "");
    cfgr_buffer_byte(line, '\n');
}

/* Starts the next option of the set. */
static void option(cfgr_buffer *line, const char *name) {
    cfgr_line_text(line, line->size == 0 ? "desired set: " : ", ", name, "");
}

static void order(cfgr_buffer *line, const char *name, cfgr_groups groups) {
    for (size_t i = 0; i < groups.count; i++) {
        if (i == 0) {
            option(line, name);
            cfgr_buffer_byte(line, ' ');
        } else {
            cfgr_buffer_text(line, " | ");
        }
        for (size_t j = 0; j < groups.items[i].count; j++) {
            cfgr_line_text(line, j == 0 ? "" : " ", groups.items[i].items[j], "");
        }
    }
}

static void options_line(cfgr_buffer *lines, const cfgr_desired_options *options) {
    static const char *const policies[] = {NULL, "do-not-terminate", "keep-volumes", "delete", "wipe-out"};
    cfgr_buffer line = {0};
    if (options->allow_empty) {
        option(&line, "allow-empty");
    }
    if (options->termination_policy_at != NULL) {
        option(&line, "termination-policy at ");
        cfgr_buffer_text(&line, options->termination_policy_at);
    } else if (options->termination_policy != CFGR_TERMINATION_UNSAID) {
        option(&line, "termination-policy ");
        cfgr_buffer_text(&line, policies[options->termination_policy]);
    }
    order(&line, "provision", options->provision);
    order(&line, "update", options->update);
    order(&line, "terminate", options->terminate);
    if (line.size > 0) {
        cfgr_line_text(lines, "", cfgr_buffer_end(&line), "\n");
    }
}

void cfgr_lines_desired(cfgr_buffer *lines, const cfgr_desired_set *set) {
    for (size_t i = 0; i < set->entries.count; i++) {
        entry_line(lines, &set->entries.items[i]);
    }
    options_line(lines, &set->options);
    for (size_t i = 0; i < set->pre_terminate.count; i++) {
        cfgr_buffer_text(lines, "pre-terminate ");
        cfgr_line_request(lines, &set->pre_terminate.items[i]);
    }
}

#endif
