/* Where the time of forward passes went, for people. */
#ifndef APP_COMMON_TIMES_H
#define APP_COMMON_TIMES_H

#include "minfer.h"

/* With MINFER_OP_TIMING: a table on stderr for each kind of pass. Then the engine, which may be NULL, is
 * freed. */
void app_engine_free(minfer_engine *e);

#endif
