/* Memory of a call: there is nothing to free. */
#ifndef CONFIGURATOR_MEMORY_H
#define CONFIGURATOR_MEMORY_H

#include "compiler.h"

/*
 * A block of zeros, aligned for everything. It is never NULL: when memory is out, the call ends. In a module, malloc hands out the same
 * memory, and free does next to nothing, because an instance lives for one call.
 */
void *cfgr_alloc(size_t size);

/* As cfgr_alloc, for this many items of this size. */
void *cfgr_alloc_items(size_t count, size_t size);

/*
 * Frees all that the SDK has allocated, for a test that makes many calls. In a module it does nothing.
 */
void cfgr_free_all(void);

#endif
