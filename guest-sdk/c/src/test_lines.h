/* Parts of the lines of an output, for tests. */
#ifndef CONFIGURATOR_TEST_LINES_H
#define CONFIGURATOR_TEST_LINES_H

#include "configurator/configstore.h"
#include "configurator/desired.h"
#include "internal.h"

/* The text between two others. Nothing if it is NULL. */
void cfgr_line_text(cfgr_buffer *line, const char *before, const char *text, const char *after);

/* Each name, with a text before it. */
void cfgr_line_names(cfgr_buffer *line, const char *before, cfgr_names names);

/* The readiness, unless it is unsaid. */
void cfgr_line_readiness(cfgr_buffer *line, cfgr_readiness ready_when);

/* The timeout, unless it is 0. */
void cfgr_line_timeout(cfgr_buffer *line, uint64_t timeout_ms);

/* Keys of the config store. */
void cfgr_line_entry(cfgr_buffer *line, const cfgr_entry *entry);
void cfgr_line_app_conf(cfgr_buffer *line, const cfgr_app_conf *key);
void cfgr_line_basic(cfgr_buffer *line, const char *key);
void cfgr_line_two_layers(cfgr_buffer *line, const cfgr_two_layers *leaf);

/* A request, with the end of its line. */
void cfgr_line_request(cfgr_buffer *line, const cfgr_request *request);

/* A line for each entry, one for the options of the set if it has any, and one for each request before a deletion. */
void cfgr_lines_desired(cfgr_buffer *lines, const cfgr_desired_set *set);

#endif
