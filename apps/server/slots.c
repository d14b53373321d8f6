/* Which slot serves a prompt, and which is emptied. */
#include "server/slots.h"

enum { WORTH_SHARING = 16 }; /* tokens: fewer are evaluated sooner than cells are shared */

minfer_status srv_slots_init(srv_slots *s, minfer_engine *e, size_t n, bool reuse, minfer_error *err)
{
    *s = (srv_slots){.e = e, .n = n, .reuse = reuse};
    s->v = mf_calloc(n, sizeof *s->v);
    return s->v ? MINFER_OK : MF_NOMEM(err);
}

static void empty(srv_slot *slot)
{
    minfer_session_free(slot->session);
    slot->session = NULL;
}

void srv_slots_free(srv_slots *s)
{
    for (size_t i = 0; s->v && i < s->n; i++) empty(&s->v[i]);
    mf_free(s->v);
    *s = (srv_slots){0};
}

/* The last token is evaluated in any case, for its logits. */
static size_t known(const srv_slots *s, const srv_slot *slot, const int32_t *ids, size_t n)
{
    size_t k = 0;
    if (!slot->session || !s->reuse || n == 0) return 0;
    const int32_t *have = minfer_session_tokens(slot->session);
    size_t most = minfer_session_length(slot->session);
    if (most > n - 1) most = n - 1;
    while (k < most && have[k] == ids[k]) k++;
    return k;
}

static srv_slot *best_for(const srv_slots *s, const int32_t *ids, size_t n, size_t *n_known)
{
    srv_slot *best = NULL;
    *n_known = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t k = known(s, &s->v[i], ids, n);
        bool better = k > *n_known || (best && k == *n_known && best->busy && !s->v[i].busy);
        if (k == 0 || !better) continue;
        best = &s->v[i];
        *n_known = k;
    }
    return best;
}

size_t srv_slots_known(const srv_slots *s, const int32_t *ids, size_t n)
{
    size_t k;
    best_for(s, ids, n, &k);
    return k;
}

/* The free slot to be filled anew: an empty one, else the one used longest ago, but another than `not` where
 * there is one. */
static srv_slot *oldest_free(const srv_slots *s, const srv_slot * not )
{
    srv_slot *old = NULL;
    for (size_t i = 0; i < s->n; i++) {
        srv_slot *slot = &s->v[i];
        if (slot->busy || slot == not ) continue;
        if (!old || (old->session && (!slot->session || slot->used < old->used))) old = slot;
    }
    if (!old)
        for (size_t i = 0; i < s->n; i++)
            if (!s->v[i].busy) old = &s->v[i];
    return old;
}

/* What the best slot holds beyond the common beginning is lost when it is taken: that must not be most of it.
 */
static bool goes_on(const srv_slot *best, size_t n_known)
{
    return best && !best->busy && n_known * 2 >= minfer_session_length(best->session);
}

static minfer_status fill(srv_slots *s, srv_slot *slot, const srv_slot *from, size_t n, minfer_error *err)
{
    if (slot == from) return minfer_session_rollback(slot->session, n, err);
    empty(slot);
    if (from) return minfer_session_fork(from->session, n, &slot->session, err);
    return minfer_session_create(s->e, &slot->session, err);
}

minfer_status srv_slots_take(srv_slots *s, const int32_t *ids, size_t n, bool alone, srv_slot **slot,
                             size_t *n_known, minfer_error *err)
{
    srv_slot *best = alone ? NULL : best_for(s, ids, n, n_known);
    if (!best) *n_known = 0;
    srv_slot *take = goes_on(best, *n_known) ? best : oldest_free(s, best);
    if (best && best != take && *n_known < WORTH_SHARING) {
        best = NULL;
        *n_known = 0;
    }
    MF_TRY(fill(s, take, best, *n_known, err));
    take->busy = true;
    take->used = ++s->now;
    *slot = take;
    return MINFER_OK;
}

void srv_slots_give(srv_slots *s, srv_slot *slot, bool drop)
{
    slot->busy = false;
    slot->used = ++s->now;
    if (drop || !s->reuse) empty(slot);
}

/* keep goes last. */
static bool evict(srv_slots *s, srv_slot *keep)
{
    srv_slot *old = NULL;
    for (size_t i = 0; i < s->n; i++) {
        srv_slot *slot = &s->v[i];
        if (slot->busy || !slot->session) continue;
        if (!old || old == keep || (slot != keep && slot->used < old->used)) old = slot;
    }
    if (old) empty(old);
    return old != NULL;
}

bool srv_slots_evict(srv_slots *s)
{
    return evict(s, NULL);
}

bool srv_slots_room(srv_slots *s, const int32_t *ids, size_t n, size_t more)
{
    minfer_engine_info info;
    size_t k;
    srv_slot *best;
    do {
        minfer_engine_get_info(s->e, &info);
        best = best_for(s, ids, n, &k);
        if ((size_t)info.n_ctx_unused >= n - k + more) return true;
    } while (evict(s, best));
    return false;
}
