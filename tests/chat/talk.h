/* Conversations under test: beside each runs another engine that knows nothing of earlier turns, renders
 * everything and evaluates everything anew. */
#ifndef MF_TESTS_TALK_H
#define MF_TESTS_TALK_H

#include "support/support.h"

#include "runtime/engine.h"

#include <jansson.h>

/* A conversation, and beside it another engine that knows nothing of earlier turns. */
typedef struct {
    minfer_model *m;
    minfer_engine *e, *fresh;
    minfer_conversation *c;
    minfer_sampler *sampler, *twin; /* make the same draws */
    minfer_turn_options o;
    minfer_turn_result r;
    mf_buf text;      /* of the answer, as it was told */
    int cancel_after; /* pieces of text; < 0: never */
    int cancel_prompt;
    size_t n_vocab;
} world;

void world_open(world *w, const char *model, int32_t n_ctx, float temperature);
void world_close(world *w);

/* The history as its JSON tells it; json_decref. */
json_t *document(const world *w);
size_t dropped(const json_t *doc);
const char *last_content(const json_t *doc);

/* The turn that w->r tells of, from the messages alone: same text, same end. */
void check_turn(world *w);
/* The session holds a prefix of the rendered history, and feeding the rest gives the bits of feeding all. */
void check_bits(world *w);
/* One turn. */
void say(world *w, const char *text);
void say_and_check(world *w, const char *text);

enum { TURNS = 10 };
extern const char *const words[TURNS];
/* Ten turns, at least two of them with an overflow, each checked; the system message stays, half the context
 * gets free. */
void ten_turns(const char *model, float temperature, int32_t n_ctx);

#endif
