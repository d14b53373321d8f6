/* From a request to a job: rendering, tokens, grammar, and every refusal that needs the model. */
#ifndef APP_SERVER_PREPARE_H
#define APP_SERVER_PREPARE_H

#include "server/server.h"

/* Takes over r's contents, also on failure. *thinking as the reply is to be told. NULL: *e says why. */
srv_job *srv_prepare(const srv_server *s, srv_request *r, srv_thinking *thinking, srv_error *e);

#endif
