/* Slots: sessions that share the engine's cells. A slot that no task holds keeps the tokens of its last one,
 * so that a later prompt with the same beginning need not evaluate that again; when cells run short it is
 * emptied, the longest unused first. Belongs to the worker's thread. Owns the sessions, not the engine. */
#ifndef APP_SERVER_SLOTS_H
#define APP_SERVER_SLOTS_H

#include "base/mem.h"

typedef struct srv_slot {
    minfer_session *session; /* NULL: empty */
    bool busy;
    uint64_t used; /* the later the greater */
} srv_slot;

typedef struct srv_slots {
    minfer_engine *e;
    srv_slot *v;
    size_t n;
    bool reuse; /* false: every prompt is evaluated from its start */
    uint64_t now;
} srv_slots;

minfer_status srv_slots_init(srv_slots *s, minfer_engine *e, size_t n, bool reuse, minfer_error *err);
void srv_slots_free(srv_slots *s);

/* How many tokens at the beginning of ids some slot holds, at most n - 1. */
size_t srv_slots_known(const srv_slots *s, const int32_t *ids, size_t n);

/* A slot for ids, one of which at least must be free: *slot is busy and its session holds *n_known of them,
 * n - 1 at most. A slot that goes on with what it holds is taken as it is; one that only shares the beginning
 * keeps its own and lends that. alone: no cells are shared with others. */
minfer_status srv_slots_take(srv_slots *s, const int32_t *ids, size_t n, bool alone, srv_slot **slot,
                             size_t *n_known, minfer_error *err);
/* The slot is free and keeps its tokens; with drop it forgets them. */
void srv_slots_give(srv_slots *s, srv_slot *slot, bool drop);

/* Are there cells for what no slot holds of ids, and `more`? Free slots are emptied for it. */
bool srv_slots_room(srv_slots *s, const int32_t *ids, size_t n, size_t more);
/* Empties the free slot that was used longest ago; false: there is none that holds anything. */
bool srv_slots_evict(srv_slots *s);

#endif
