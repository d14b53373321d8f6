/* One tool call, {"name": ..., "arguments": {...}}, read as the model writes it. "parameters" is taken for
 * "arguments", other fields are passed over. */
#ifndef APP_SERVER_CALL_H
#define APP_SERVER_CALL_H

#include "server/json_scan.h"
#include "server/request.h"

typedef enum srv_call_field {
    SRV_CALL_NOTHING,
    SRV_CALL_KEY,
    SRV_CALL_NAME,
    SRV_CALL_ARGUMENTS,
    SRV_CALL_OTHER
} srv_call_field;

typedef struct srv_call { /* zero-initialise, with tools */
    const srv_tool *tools;
    size_t n_tools;
    bool only; /* other fields than those of a call make it none */
    srv_json_scan scan;
    srv_call_field field; /* what is being read */
    mf_buf key, name;
    mf_buf args;          /* JSON text; control characters in its strings escaped */
    const srv_tool *tool; /* once the name is complete */
    bool args_done;
} srv_call;

/* Takes one byte; c->scan.state tells DONE and BAD, also for what is JSON and no call of one of the tools.
 * false: out of memory. */
bool srv_call_byte(srv_call *c, char byte);
/* Name and arguments are there (perhaps none were written), only closing brackets may lack. */
bool srv_call_ready(const srv_call *c);
/* Arguments may be handed out while they come: it is sure that they are an object's text. */
bool srv_call_streams(const srv_call *c);
void srv_call_free(srv_call *c);

#endif
