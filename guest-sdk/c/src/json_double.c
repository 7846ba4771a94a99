/* In a file of its own, so that a module which has no fractions has no code for them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configurator/json.h"
#include "configurator/text.h"

bool cfgr_as_double(cfgr_json value, double *result) {
    if (value.type != CFGR_TYPE_NUMBER) {
        return false;
    }
    double number = strtod(cfgr_copy_bytes(value.source, value.source_size), NULL);
    if (!isfinite(number)) {
        return false;
    }
    *result = number;
    return true;
}

cfgr_json cfgr_double(double value) {
    if (!isfinite(value)) {
        return cfgr_null();
    }
    char digits[32];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    size_t size = strlen(digits);
    return (cfgr_json){.type = CFGR_TYPE_NUMBER, .source = cfgr_copy_bytes(digits, size), .source_size = size};
}
