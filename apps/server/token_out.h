/* Log-probabilities of tokens as replies show them, collected until a frame takes them. */
#ifndef APP_SERVER_TOKEN_OUT_H
#define APP_SERVER_TOKEN_OUT_H

#include "server/reply.h"

typedef struct srv_token_out {
    bool chat;
    mf_buf tokens; /* chat: objects; completions: texts. Separated by commas, as the others */
    mf_buf logprobs, tops, offsets; /* completions only */
    size_t offset;                  /* characters of the text before the next token */
} srv_token_out;

/* Characters that begin in these bytes. */
size_t srv_count_starts(const char *s, size_t n);

bool srv_token_out_add(srv_token_out *t, const srv_token *token);
/* Appends the value of "logprobs" with what was collected, and forgets it: null when there is nothing. */
bool srv_token_out_take(srv_token_out *t, mf_buf *out);
void srv_token_out_free(srv_token_out *t);

#endif
