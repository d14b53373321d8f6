/* Text of a model, taken apart: thoughts, content, tool calls. Works on streams: what is certain comes out at
 * once, and what comes out does not depend on how the text was cut.
 *
 * - <think>...</think> at the start is thoughts, without the blanks around them. An answer whose prompt has
 *   opened the tag begins in them.
 * - <tool_call>{"name": ..., "arguments": {...}}</tool_call> is a call, as often as it comes, if it names one
 *   of the tools; an answer that begins with such an object and no tag is one, too, also in a fence of
 *   ```json, and so are further ones behind it. Anything else stays content, tags included. Blanks before a
 *   call are dropped.
 * - A call comes out when it is complete, or when its arguments get long: what then turns out to be no JSON
 *   is passed on as it is, up to the closing tag. A call that the end cuts off before that is content. */
#ifndef APP_SERVER_SPLITTER_H
#define APP_SERVER_SPLITTER_H

#include "server/call.h"

typedef enum srv_part { SRV_REASONING, SRV_CONTENT, SRV_CALL_START, SRV_CALL_ARGS } srv_part;
/* A part goes on by n bytes of text (never none, but for CALL_START, whose text is the name). Calls are
 * counted from 0. false: out of memory. */
typedef bool srv_part_fn(void *user, srv_part part, size_t call, const char *text, size_t n);

typedef enum srv_split_state {
    SRV_SPLIT_START,       /* thoughts may come */
    SRV_SPLIT_THINK_START, /* thoughts have begun; blanks are dropped */
    SRV_SPLIT_THINK,
    SRV_SPLIT_AFTER_THINK,  /* blanks are dropped */
    SRV_SPLIT_ANSWER_START, /* a call without a tag may come */
    SRV_SPLIT_ANSWER,
    SRV_SPLIT_CALL,
    SRV_SPLIT_BROKEN_CALL,   /* what follows of a call that is no JSON, up to its closing tag */
    SRV_SPLIT_AFTER_CALL,    /* the closing tag may come, or what models write by mistake */
    SRV_SPLIT_BETWEEN_CALLS, /* blanks are dropped unless text follows */
    SRV_SPLIT_OVER,
} srv_split_state;

typedef struct srv_splitter {
    const srv_request *r;
    srv_part_fn *fn;
    void *user;
    srv_split_state state;
    mf_buf held; /* text that is not certain yet */
    srv_call call;
    size_t from, at; /* while in a call: where it begins in held, and what of held it has taken */
    size_t emitted;  /* bytes of its arguments that came out */
    bool tagged;     /* it stands behind a tag */
    bool started;    /* its name came out */
    size_t n_calls;  /* whose names came out */
    bool done;       /* no more calls are allowed; text is passed over from here on */
    bool final, failed;
} srv_splitter;

/* r must outlive s. */
void srv_splitter_init(srv_splitter *s, const srv_request *r, srv_thinking thinking, srv_part_fn *fn,
                       void *user);
/* false: out of memory (or fn said so). */
bool srv_splitter_push(srv_splitter *s, const char *text, size_t n);
bool srv_splitter_finish(srv_splitter *s); /* nothing follows */
void srv_splitter_free(srv_splitter *s);

#endif
