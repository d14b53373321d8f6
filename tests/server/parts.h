/* Shared by the tests of the server's protocol: requests from texts, and what came out of a splitter. */
#ifndef MF_TESTS_SERVER_PARTS_H
#define MF_TESTS_SERVER_PARTS_H

#include "support/support.h"

#include "server/splitter.h"

extern const srv_context
    plain_context; /* models "made" and "made.gguf", 1000 tokens, 8 numbers of an embedding */

/* Two tools, add (a, b: integers) and now (none), as the value of "tools". */
#define TWO_TOOLS                                                                                 \
    "[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":\"object\"," \
    "\"properties\":"                                                                             \
    "{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},\"required\":[\"a\",\"b\"]}}},"  \
    "{\"type\":\"function\",\"function\":{\"name\":\"now\"}}]"

/* Parses; fails the test when it is refused. */
void parse_ok(srv_endpoint endpoint, const char *body, srv_request *r);
/* A chat with these further fields ("" or ",\"n\":2"). */
void parse_chat(const char *fields, srv_request *r);

/* What came out of a splitter, one part a line: "reasoning: ...", "content: ...", "call 0: add {...}". Parts
 * that go on are joined. Line ends within are shown as \n. */
typedef struct shown {
    mf_buf text;
    int last;
    size_t call;
} shown;
bool show_part(void *user, srv_part part, size_t call, const char *text, size_t n);

/* The whole of text, in pieces of `step` bytes. */
void split(const srv_request *r, srv_thinking thinking, const char *text, size_t n, size_t step, shown *out);

#endif
