/* What clients are told: bodies of replies and frames of streams, as bytes. Pure, as request.h. All texts are
 * made valid UTF-8 (ill-formed parts become U+FFFD) and escaped.
 *
 * A srv_reply is told what the model said, the same way for streams and whole replies; for a stream each call
 * appends the frames that are due to `out`, for a whole reply srv_reply_end appends the body. Thoughts and
 * tool calls are found on the way, so both say the same. Functions that append return false when memory ran
 * out; the reply is then in no further use but to be freed. */
#ifndef APP_SERVER_REPLY_H
#define APP_SERVER_REPLY_H

#include "server/request.h"

typedef struct srv_reply srv_reply;

typedef struct srv_reply_info {
    const char *model; /* name the reply gives */
    int64_t created;   /* seconds since 1970 */
    uint64_t nonce;    /* random: ids of the reply and of its tool calls are made of it */
} srv_reply_info;

/* A token and its log-probability; bytes need not be whole characters. */
typedef struct srv_logprob {
    const char *bytes;
    size_t n;
    float logprob; /* natural; -infinity is written as -9999 */
} srv_logprob;
typedef struct srv_token {
    srv_logprob drawn;
    const srv_logprob *top; /* the likeliest, best first */
    size_t n_top;
} srv_token;

typedef struct srv_usage {
    size_t n_prompt, n_generated; /* tokens; n_generated over all choices */
    size_t n_cached;              /* of the prompt, those that were not evaluated anew */
} srv_usage;

typedef enum srv_finish { SRV_FINISH_STOP, SRV_FINISH_LENGTH } srv_finish;

/* r and i.model must outlive the reply; r's prompts and sampling.seed are final. NULL: out of memory. */
srv_reply *srv_reply_create(const srv_request *r, const srv_reply_info *i);
void srv_reply_free(srv_reply *p);

/* Choices are 0 .. n_prompts * n - 1 (chat: n). */
size_t srv_reply_choices(const srv_request *r);

/* Begins one choice: the role's frame. thinking as srv_prompt_thinking has it. prompt (n_prompt bytes) is for
 * `echo` of completions, else NULL. */
bool srv_reply_begin(srv_reply *p, size_t choice, srv_thinking thinking, const char *prompt, size_t n_prompt,
                     mf_buf *out);
/* n bytes of text that became certain: whole characters, nothing of a stop string; may be none. token: what
 * was drawn, for logprobs; NULL: none. *done: the answer is complete and what more the model says would be
 * passed over (one tool call was allowed); the caller finishes the choice with SRV_FINISH_STOP. */
bool srv_reply_text(srv_reply *p, size_t choice, const char *text, size_t n, const srv_token *token,
                    bool *done, mf_buf *out);
/* Ends one choice: what was held back, and the frame of its finish_reason (tool_calls where there are any and
 * why is STOP). */
bool srv_reply_finish(srv_reply *p, size_t choice, srv_finish why, mf_buf *out);
/* After all choices: usage when asked for and [DONE], or the whole body. */
bool srv_reply_end(srv_reply *p, const srv_usage *u, mf_buf *out);

/* A failure in the middle of a stream: an error frame and [DONE]. */
bool srv_stream_error(const srv_error *e, mf_buf *out);
/* The body of a refusal. */
bool srv_error_body(const srv_error *e, mf_buf *out);
/* A body, and the end of a stream, for when there is no memory to make one. */
extern const char srv_nomem_body[], srv_nomem_frames[];

/* GET /v1/models */
bool srv_model_body(const char *name, int64_t created, mf_buf *out);
bool srv_models_body(const char *const *names, size_t n, int64_t created, mf_buf *out);
/* embeddings: n vectors of n_embd floats, one after the other. */
bool srv_embeddings_body(const srv_request *r, const char *model, const float *vectors, size_t n,
                         size_t n_embd, size_t n_tokens, mf_buf *out);
/* {"tokens":[...]}; with_pieces asks m for the text of each. */
bool srv_tokens_body(const srv_request *r, const minfer_model *m, const int32_t *ids, size_t n, mf_buf *out);
bool srv_text_body(const char *text, size_t n, mf_buf *out); /* {"content":"..."} */

/* Log-probabilities of a row of logits: of id, and of the n likeliest, best first (the lower id among
 * equals). Returns how many there are: n, or n_vocab where that is less. The bytes of tokens are the caller's
 * to find. */
typedef struct srv_rank {
    int32_t id;
    float logprob;
} srv_rank;
size_t srv_logprobs(const float *logits, int32_t n_vocab, int32_t id, float *logprob, srv_rank *top,
                    size_t n);

#endif
