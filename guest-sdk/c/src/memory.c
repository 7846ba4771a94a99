#include "configurator/memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "configurator/panic.h"
#include "internal.h"

static void *or_panic(void *block) {
    if (block == NULL) {
        cfgr_panic("out of memory");
    }
    return block;
}

#ifdef __wasm__

/*
 * Memory is handed out upwards. The first blocks come from an array, which costs nothing where it is not touched, so that a common call has
 * no need to grow the memory; the host would have to undo that.
 */
#define PAGE ((size_t)64 * 1024)
static _Alignas(max_align_t) char first[3 * PAGE];
static char *next = first;
static char *end = first + sizeof first;

/* Pages to grow by at least. */
#define STEP ((size_t)16)

static bool grow(size_t missing) {
    size_t pages = (missing + PAGE - 1) / PAGE;
    size_t wanted = pages > STEP ? pages : STEP;
    size_t before = __builtin_wasm_memory_grow(0, wanted);
    if (before == SIZE_MAX) {
        wanted = pages;
        before = __builtin_wasm_memory_grow(0, wanted);
    }
    if (before == SIZE_MAX) {
        return false;
    }
    char *start = (char *)(before * PAGE);
    if (start != end) {
        /* What is left below is lost: once of the array, and where someone else has grown the memory. */
        next = start;
    }
    end = start + wanted * PAGE;
    return true;
}

void *cfgr_place(size_t size, size_t alignment) {
    if (size > SIZE_MAX / 2) {
        cfgr_panic("out of memory");
    }
    for (;;) {
        char *block = (char *)(((uintptr_t)next + alignment - 1) & ~(uintptr_t)(alignment - 1));
        if (block <= end && size <= (size_t)(end - block)) {
            next = block + size;
            return block;
        }
        if (!grow(size + alignment)) {
            cfgr_panic("out of memory");
        }
    }
}

void *cfgr_resize(void *block, size_t old_size, size_t new_size) {
    char *start = block;
    if (start != NULL && start + old_size == next && new_size <= (size_t)(end - start)) {
        next = start + new_size;
        return block;
    }
    if (new_size <= old_size) {
        return block;
    }
    void *moved = cfgr_place(new_size, _Alignof(max_align_t));
    if (old_size != 0) {
        memcpy(moved, block, old_size);
    }
    return moved;
}

void cfgr_free_all(void) {}

#else

/* Each block by itself, so that the tools which look for mistakes with memory see all of them. */
typedef struct block {
    struct block *previous;
    struct block *next;
    _Alignas(max_align_t) char content[];
} block;

static _Thread_local block *newest;

static block *block_of(void *content) {
    return (block *)((char *)content - offsetof(block, content));
}

void *cfgr_place(size_t size, size_t alignment) {
    (void)alignment;
    block *placed = or_panic(malloc(sizeof(block) + size));
    placed->previous = newest;
    placed->next = NULL;
    if (newest != NULL) {
        newest->next = placed;
    }
    newest = placed;
    return placed->content;
}

void *cfgr_resize(void *content, size_t old_size, size_t new_size) {
    (void)old_size;
    if (content == NULL) {
        return cfgr_place(new_size, _Alignof(max_align_t));
    }
    block *moved = or_panic(realloc(block_of(content), sizeof(block) + new_size));
    if (moved->previous != NULL) {
        moved->previous->next = moved;
    }
    if (moved->next != NULL) {
        moved->next->previous = moved;
    } else {
        newest = moved;
    }
    return moved->content;
}

void cfgr_free_all(void) {
    while (newest != NULL) {
        block *previous = newest->previous;
        free(newest);
        newest = previous;
    }
}

#endif

void *cfgr_alloc(size_t size) {
    return memset(cfgr_place(size, _Alignof(max_align_t)), 0, size);
}

void *cfgr_alloc_items(size_t count, size_t size) {
    if (size != 0 && count > SIZE_MAX / size) {
        or_panic(NULL);
    }
    return cfgr_alloc(count * size);
}

void *cfgr_room(void *items, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) {
        return items;
    }
    size_t wanted = *capacity == 0 ? 8 : *capacity * 2;
    if (wanted > SIZE_MAX / 2 / size) {
        or_panic(NULL);
    }
    void *grown = cfgr_resize(items, *capacity * size, wanted * size);
    *capacity = wanted;
    return grown;
}
