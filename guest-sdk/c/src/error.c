#include "configurator/error.h"

#include "configurator/text.h"
#include "internal.h"

const cfgr_error *cfgr_error_of(cfgr_error error) {
    cfgr_error *made = cfgr_place(sizeof *made, _Alignof(cfgr_error));
    *made = error;
    made->message = error.message == NULL ? "" : cfgr_copy(error.message);
    made->code = cfgr_copy(error.code);
    return made;
}
