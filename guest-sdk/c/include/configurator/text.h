/* Texts: in UTF-8, with a zero byte at the end. What these functions return lives until the call ends. */
#ifndef CONFIGURATOR_TEXT_H
#define CONFIGURATOR_TEXT_H

#include "compiler.h"

/* A copy. Of NULL, NULL. */
const char *cfgr_copy(const char *text);

/* A copy of so many bytes, as a text. */
const char *cfgr_copy_bytes(const char *bytes, size_t size);

/* These texts, one after another: `cfgr_concat("entry/", namespace, "/", name)`. None of them may be NULL. */
#define cfgr_concat(...) cfgr_concat_all((const char *const[]){__VA_ARGS__, cfgr_end_of_texts})

/* As snprintf writes it. It adds some 20 kB to a module; `cfgr_concat` and `cfgr_decimal` add nothing. */
const char *cfgr_format(const char *format, ...) CFGR_FORMAT(1, 2);

/* The digits of a number. */
const char *cfgr_decimal(int64_t number);
const char *cfgr_decimal_unsigned(uint64_t number);

/* Whether two texts are the same. NULL is the same as NULL alone. */
bool cfgr_equal(const char *one, const char *other);

/* The rest of the text after this prefix, in the same memory; NULL where it begins otherwise, or is NULL. */
const char *cfgr_after(const char *text, const char *prefix);

/* What `cfgr_concat` calls. */
const char *cfgr_concat_all(const char *const *texts);
extern const char cfgr_end_of_texts[];

#endif
