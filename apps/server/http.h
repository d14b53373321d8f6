/* The transport: HTTP by libmicrohttpd, a few threads that each serve many connections. */
#ifndef APP_SERVER_HTTP_H
#define APP_SERVER_HTTP_H

#include "server/exchange.h"

/* Listens. *port: where, also when any was asked for. */
minfer_status srv_http_start(srv_http *h, srv_server *s, uint16_t *port, minfer_error *err);
/* Requests that have not been answered to the end. */
int srv_http_busy(const srv_http *h);
void srv_http_stop(srv_http *h);

#endif
