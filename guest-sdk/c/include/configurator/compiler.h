/* What the SDK asks of the compiler beside C11: clang and gcc have it. */
#ifndef CONFIGURATOR_COMPILER_H
#define CONFIGURATOR_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The compiler warns where the answer is thrown away. */
#define CFGR_MUST_USE __attribute__((warn_unused_result))
/* It never returns. */
#define CFGR_NO_RETURN __attribute__((noreturn))
/* The compiler checks the arguments against the format. */
#define CFGR_FORMAT(place, first) __attribute__((format(printf, place, first)))

#endif
