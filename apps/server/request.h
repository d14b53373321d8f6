/* What clients ask for: bodies of requests, read and checked whole, as values the worker can use. Pure: no
 * sockets, no engine, no state; any thread. A request owns all it points to.
 *
 * The life of a request that makes text: srv_request_parse; prompts into tokens (minfer_chat_tokenize with
 * r.chat, or r.prompts); srv_prompt_thinking; srv_request_grammar; a srv_reply (reply.h) that is told the
 * text as it comes; srv_request_free. All of that up to the grammar is done before anything is queued, so
 * that what can be refused is refused at once. */
#ifndef APP_SERVER_REQUEST_H
#define APP_SERVER_REQUEST_H

#include "base/mem.h"

typedef enum srv_endpoint {
    SRV_CHAT,        /* POST /v1/chat/completions */
    SRV_COMPLETIONS, /* POST /v1/completions */
    SRV_EMBEDDINGS,  /* POST /v1/embeddings */
    SRV_TOKENIZE,    /* POST /tokenize */
    SRV_DETOKENIZE,  /* POST /detokenize */
} srv_endpoint;

enum {
    SRV_MAX_DEPTH = 100, /* brackets in brackets of a body */
    SRV_MAX_MESSAGES = 4096,
    SRV_MAX_TOOLS = 128,
    SRV_MAX_CHOICES = 128, /* prompts times n */
    SRV_MAX_STOPS = 16,
    SRV_MAX_STOP_BYTES = 1024, /* of one stop string */
    SRV_MAX_TOP_LOGPROBS = 20,
    SRV_MAX_BIASES = 1024,
    SRV_MAX_INPUTS = 2048, /* of an embeddings request */
};

/* Why a request is refused: the HTTP status and the fields of OpenAI's error object. */
typedef struct srv_error {
    int status;       /* 0: no error */
    const char *type; /* "invalid_request_error", ...; static */
    const char *code; /* static; NULL: null */
    char param[256];  /* path of the field, "messages[2].content"; empty: null */
    char message[1200];
} srv_error;

/* Fills e and returns false, so that callers write `return srv_refuse(e, ...)`. param may be NULL. The type
 * follows from the status; code may be NULL. */
bool srv_refuse(srv_error *e, int status, const char *code, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* An error of the library: what the caller gave wrongly (ARG, FORMAT, UNSUPPORTED, LIMIT) is 400, anything
 * else 500. */
bool srv_refuse_status(srv_error *e, const char *param, minfer_status st, const minfer_error *err);
/* 400 context_length_exceeded: n_prompt tokens where n_ctx - 1 is the most. */
bool srv_refuse_context(srv_error *e, srv_endpoint endpoint, size_t n_prompt, size_t n_ctx);

/* What requests are read against. */
typedef struct srv_context {
    const char *const *models; /* names this server answers to; another one is 404 model_not_found */
    size_t n_models;           /* 0: any */
    int32_t n_vocab;           /* bounds token ids; 0: not checked */
    int32_t n_embd;            /* what `dimensions` must be, if given; 0: not checked */
    int32_t max_n;             /* most choices per prompt; 0: SRV_MAX_CHOICES */
    minfer_sampling sampling;  /* the defaults; its logit_bias stays with the caller */
} srv_context;
/* Whether the server answers to the name; if not, *e is a 404. Of a context with names. */
bool srv_model_fits(const srv_context *c, const char *name, srv_error *e);

/* A prompt as the client gave it: a text, or ids (text NULL). */
typedef struct srv_prompt {
    const char *text; /* n_text bytes of UTF-8, NUL bytes may be among them */
    size_t n_text;
    const int32_t *ids;
    size_t n_ids;
} srv_prompt;

typedef enum srv_constraint { SRV_FREE, SRV_GBNF, SRV_SCHEMA } srv_constraint;
typedef enum srv_tool_choice {
    SRV_TOOLS_NONE, /* no tools given, or "none": the template sees none, and tags stay text */
    SRV_TOOLS_AUTO,
    SRV_TOOLS_FORCED, /* "required", or a function by name */
} srv_tool_choice;

typedef struct srv_tool {
    const char *name;
    size_t index;           /* in the request's list */
    const char *parameters; /* JSON schema as text */
    bool strict;            /* arguments satisfy the schema; else they are JSON of the model's making */
} srv_tool;

typedef struct srv_request {
    srv_endpoint endpoint;
    const char *model; /* as given; NULL: not given */
    mf_arena mem;      /* holds all that is pointed to */

    /* chat: messages normalised for templates (content a string, arguments an object, developer is system) */
    minfer_chat chat;
    bool reasoning;  /* <think> parts go to reasoning_content; false with reasoning_format "none" */
    srv_tool *tools; /* those that may be called: with a function chosen by name that one alone */
    size_t n_tools;
    srv_tool_choice tool_choice;
    bool parallel_tool_calls; /* false: the answer ends after one call */

    /* completions and embeddings: at least one; tokenize: one */
    srv_prompt *prompts;
    size_t n_prompts;
    bool echo; /* completions: the prompt stands before the answer */

    /* making text */
    minfer_sampling sampling; /* the context's defaults with what was given; logit_bias is the request's */
    bool seed_given;          /* false: the caller sets sampling.seed before it creates the reply */
    int32_t max_tokens;       /* -1: until the end or the context is full */
    int32_t n;                /* choices per prompt; choice c belongs to prompt c / n */
    const char **stop;
    size_t n_stop;
    bool ignore_end;
    bool stream, include_usage;
    bool logprobs;      /* of drawn tokens */
    int32_t n_logprobs; /* and of so many likeliest ones at each place */
    srv_constraint constraint;
    const char *grammar; /* the GBNF or schema; use srv_request_grammar */
    size_t n_grammar;

    /* embeddings */
    bool base64;

    /* tokenize, detokenize */
    bool add_special, parse_special; /* BOS as the model asks for; special tokens in the text */
    bool with_pieces;                /* tokenize: ids with their text */
    bool special;                    /* detokenize: control tokens as their names */
    const int32_t *ids;              /* detokenize */
    size_t n_ids;
} srv_request;

/* Reads n bytes of a body. On refusal *r is empty and *e says why. What is given as null is not given;
 * unknown fields are passed over. */
bool srv_request_parse(srv_endpoint endpoint, const char *body, size_t n, const srv_context *c,
                       srv_request *r, srv_error *e);
void srv_request_free(srv_request *r);

/* Whether an answer may begin with thoughts, which constraints leave alone. */
typedef enum srv_thinking {
    SRV_THINKING_NEVER,    /* the model has no <think>, or the prompt ends in </think> */
    SRV_THINKING_POSSIBLE, /* it may begin with <think> */
    SRV_THINKING_OPEN,     /* the prompt has opened <think> */
} srv_thinking;
/* false: *e says why, which is memory. */
bool srv_prompt_thinking(const minfer_model *m, const int32_t *ids, size_t n, srv_thinking *thinking,
                         srv_error *e);

/* The grammar of the answers: response_format or grammar, forced tool calls, or both, behind what may be
 * thought before. *out NULL: none, all is allowed. Refusals name the field. */
bool srv_request_grammar(const srv_request *r, srv_thinking thinking, minfer_grammar **out, srv_error *e);
/* The same as text; *text, which is empty before, stays so where there is none. */
bool srv_request_gbnf(const srv_request *r, srv_thinking thinking, mf_buf *text, srv_error *e);

#endif
