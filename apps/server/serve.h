/* `minfer serve`. */
#ifndef APP_SERVER_SERVE_H
#define APP_SERVER_SERVE_H

#include "common/program.h"

extern const app_program srv_serve;

#endif
