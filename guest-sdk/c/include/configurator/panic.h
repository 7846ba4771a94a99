/* The end of a handler that has a mistake in it. */
#ifndef CONFIGURATOR_PANIC_H
#define CONFIGURATOR_PANIC_H

#include "compiler.h"

/*
 * Ends the call: the message and the place are logged as an error, and the module traps. The host takes that for a failure that may pass, and
 * says the message. Natively it goes to standard error, and the program aborts. For what the input can be wrong about, return an error instead.
 */
#define cfgr_panic(message) cfgr_panic_at((message), __FILE__, __LINE__)

/* Ends the call unless the condition holds. The standard `assert` does the same in a module. */
#define CFGR_ASSERT(condition) ((condition) ? (void)0 : cfgr_panic("this does not hold: " #condition))

/* What the macros call. Without a file, no place is said. */
CFGR_NO_RETURN void cfgr_panic_at(const char *message, const char *file, int line);

#endif
