/* What a command does, once its options are read. */
#ifndef APP_COMMON_PROGRAM_H
#define APP_COMMON_PROGRAM_H

#include "common/options.h"

typedef struct app_program {
    minfer_status (*check)(
        const app_options *o,
        minfer_error *err); /* refuses before anything is loaded; NULL: nothing to refuse */
    minfer_status (*run)(const app_options *o, minfer_error *err);
} app_program;

#endif
