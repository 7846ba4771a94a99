/*
 * What a module has in place of the C library's own: an allocator that hands out the memory of the call, and ends that say why. Compiled
 * before all else, because the linker takes the first that it finds.
 *
 * An instance lives for one call, so what is freed within it is seldom worth the work of finding it again: only the newest block grows in
 * place, or makes room.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <configurator_sdk.h>

/* Of the SDK: a block whose content is not set, and a block in another size; in place where it is the newest. */
void *cfgr_place(size_t size, size_t alignment);
void *cfgr_resize(void *block, size_t old_size, size_t new_size);

/* What precedes a block: as many bytes as keep it aligned. */
typedef struct header {
    _Alignas(max_align_t) size_t size;
} header;

/* So much that nobody has it, and that nothing overflows below it. */
#define MAX_SIZE ((size_t)1 << 31)

static void *place(size_t size, size_t alignment) {
    if (size >= MAX_SIZE || alignment >= MAX_SIZE) {
        errno = ENOMEM;
        return NULL;
    }
    if (alignment < sizeof(header)) {
        alignment = sizeof(header);
    }
    char *block = (char *)cfgr_place(alignment + size, alignment) + alignment;
    ((header *)block)[-1].size = size;
    return block;
}

void *malloc(size_t size) {
    return place(size, sizeof(header));
}

void *calloc(size_t count, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = malloc(total);
    return block == NULL ? NULL : memset(block, 0, total);
}

void *realloc(void *block, size_t size) {
    if (block == NULL) {
        return malloc(size);
    }
    if (size >= MAX_SIZE) {
        errno = ENOMEM;
        return NULL;
    }
    header *start = (header *)block - 1;
    header *moved = cfgr_resize(start, sizeof(header) + start->size, sizeof(header) + size);
    moved->size = size;
    return moved + 1;
}

void free(void *block) {
    if (block != NULL) {
        header *start = (header *)block - 1;
        cfgr_resize(start, sizeof(header) + start->size, 0);
    }
}

size_t malloc_usable_size(void *block) {
    return block == NULL ? 0 : ((header *)block)[-1].size;
}

void *aligned_alloc(size_t alignment, size_t size) {
    return place(size, alignment);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *block = place(size, alignment);
    if (block == NULL) {
        return ENOMEM;
    }
    *result = block;
    return 0;
}

void abort(void) {
    cfgr_panic_at("abort was called", NULL, 0);
}

/* What `assert` calls; that of the C library would bring all of standard output with it. */
_Noreturn void __assert_fail(const char *expression, const char *file, int line, const char *function) {
    cfgr_panic_at(cfgr_concat("this does not hold in ", function == NULL ? "a function" : function, ": ", expression), file, line);
}
