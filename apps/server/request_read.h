/* How a request is read, shared by the files that read its parts. */
#ifndef APP_SERVER_REQUEST_READ_H
#define APP_SERVER_REQUEST_READ_H

#include "server/fields.h"

/* Of a chat: messages, tools, tool_choice, parallel_tool_calls, chat_template_kwargs. */
bool srv_read_messages(const srv_object *body, srv_request *r);
bool srv_read_tools(const srv_object *body, srv_request *r);

/* A text, ids, or a list of either (`lists`), as the field `name`; required. */
bool srv_read_prompts(const srv_object *body, const char *name, const srv_context *c, size_t limit,
                      srv_request *r);
/* An array of ids within the vocabulary, path being its own. */
bool srv_read_ids(const srv_object *body, const json_t *j, const char *path, const srv_context *c,
                  const int32_t **ids, size_t *n);

/* Parameters of making text. */
bool srv_read_sampling(const srv_object *body, const srv_context *c, srv_request *r);

#endif
