#include "configurator/input.h"

#include "configurator/text.h"
#include "internal.h"

cfgr_json cfgr_watched_object(const cfgr_watched *watched) {
    return cfgr_parse_kept(watched->object);
}

cfgr_json cfgr_input_object(const cfgr_input *input) {
    return input->object_count == 0 ? (cfgr_json){0} : cfgr_watched_object(&input->objects[0]);
}

cfgr_watch_event cfgr_input_event(const cfgr_input *input) {
    return input->object_count == 0 ? CFGR_MODIFIED : input->objects[0].event;
}

static const cfgr_result_entry *find(cfgr_result_entries entries, const char *key) {
    for (size_t i = 0; i < entries.count; i++) {
        if (cfgr_equal(entries.items[i].key, key)) {
            return &entries.items[i];
        }
    }
    return NULL;
}

static const cfgr_result *find_one(cfgr_result_entries entries, const char *key) {
    const cfgr_result_entry *entry = find(entries, key);
    return entry == NULL || entry->is_group ? NULL : &entry->results.items[0];
}

static cfgr_results find_group(cfgr_result_entries entries, const char *key) {
    const cfgr_result_entry *entry = find(entries, key);
    return entry == NULL || !entry->is_group ? (cfgr_results){0} : entry->results;
}

/* What there is, as far as it was told, in a sentence about what is missing. */
static void known(cfgr_buffer *sentence, const char *name, bool is_first) {
    cfgr_buffer_text(sentence, is_first ? "" : ", ");
    cfgr_buffer_text(sentence, name);
}

/* The begin of that sentence: `who` has left no `what` under this key. */
static cfgr_buffer missing(const char *who, const char *what, const char *key, bool is_empty) {
    cfgr_buffer sentence = {0};
    cfgr_buffer_text(&sentence, cfgr_concat("no ", what, " `", key, "`: ", who, " left "));
    if (is_empty) {
        cfgr_buffer_text(&sentence, cfgr_concat("no ", what, "s"));
    }
    return sentence;
}

static const cfgr_error *no_document(cfgr_documents documents, const char *who, const char *what, const char *key) {
    cfgr_buffer sentence = missing(who, what, key, documents.count == 0);
    for (size_t i = 0; i < documents.count; i++) {
        known(&sentence, documents.items[i].name, i == 0);
    }
    return cfgr_fatal(cfgr_buffer_end(&sentence));
}

static const cfgr_error *entry(const cfgr_input *input, const char *key, const cfgr_result_entry **result) {
    *result = find(input->results, key);
    if (*result != NULL) {
        return NULL;
    }
    cfgr_buffer sentence = missing("the previous phase", "result", key, input->results.count == 0);
    for (size_t i = 0; i < input->results.count; i++) {
        known(&sentence, input->results.items[i].key, i == 0);
    }
    return cfgr_fatal(cfgr_buffer_end(&sentence));
}

const cfgr_error *cfgr_input_result(const cfgr_input *input, const char *request_name, const cfgr_result **result) {
    const cfgr_result_entry *found;
    *result = NULL;
    CFGR_TRY(entry(input, request_name, &found));
    if (found->is_group) {
        return cfgr_fatal(cfgr_concat(
            "`", request_name, "` is a group of results, not the result of one request: read it as a group"));
    }
    *result = &found->results.items[0];
    return NULL;
}

const cfgr_result *cfgr_input_find_result(const cfgr_input *input, const char *request_name) {
    return find_one(input->results, request_name);
}

const cfgr_error *cfgr_input_group(const cfgr_input *input, const char *group_by, cfgr_results *group) {
    const cfgr_result_entry *found;
    *group = (cfgr_results){0};
    CFGR_TRY(entry(input, group_by, &found));
    if (!found->is_group) {
        return cfgr_fatal(
            cfgr_concat("`", group_by, "` is the result of one request, not a group: read it as a result"));
    }
    *group = found->results;
    return NULL;
}

cfgr_results cfgr_input_find_group(const cfgr_input *input, const char *group_by) {
    return find_group(input->results, group_by);
}

static const char *find_document(cfgr_documents documents, const char *name) {
    for (size_t i = 0; i < documents.count; i++) {
        if (cfgr_equal(documents.items[i].name, name)) {
            return documents.items[i].text;
        }
    }
    return NULL;
}

const cfgr_error *cfgr_input_argument(const cfgr_input *input, const char *key, cfgr_json *value) {
    const char *text = cfgr_input_find_argument(input, key);
    *value = cfgr_parse_kept(text);
    return text == NULL ? no_document(input->arguments, "the previous phase", "argument", key) : NULL;
}

const char *cfgr_input_find_argument(const cfgr_input *input, const char *key) {
    return find_document(input->arguments, key);
}

cfgr_json cfgr_input_parameters(const cfgr_input *input) {
    return cfgr_parse_kept(input->context.parameters);
}

const cfgr_result *cfgr_input_answer(const cfgr_input *input, const char *request_name) {
    return input->last == NULL ? NULL : find_one(input->last->results, request_name);
}

cfgr_results cfgr_input_answers(const cfgr_input *input, const char *group_by) {
    return input->last == NULL ? (cfgr_results){0} : find_group(input->last->results, group_by);
}

cfgr_json cfgr_input_notes(const cfgr_input *input) {
    return input->last == NULL ? (cfgr_json){0} : cfgr_parse_kept(input->last->data);
}

const cfgr_error *cfgr_input_output_of(const cfgr_input *input, const char *path, cfgr_json *output) {
    const char *text = find_document(input->outputs, path);
    *output = cfgr_parse_kept(text);
    return text == NULL ? no_document(input->outputs, "earlier steps", "output", path) : NULL;
}
