/* DRY ("don't repeat yourself"): a token that would lengthen a repetition is penalized, exponentially in the
 * length of what it repeats: multiplier * base^(length - allowed_length). */
#include "sampling/stages.h"

#include "base/mathfn.h"

static inline int32_t from_end(const minfer_sampler *s, size_t i)
{
    return s->history[s->n_history - 1 - i];
}

/* How many tokens at the end of the history may be compared: those after the last breaker. */
static size_t comparable(const minfer_sampler *s)
{
    size_t n = 0;
    while (n < s->n_history && !(s->breaker && s->breaker[from_end(s, n)])) n++;
    return n;
}

/* z[i] = how many of the last tokens, read backwards, equal those that end i tokens earlier, at most limit:
 * the Z function of the reversed history, in linear time. */
static void match_lengths(const minfer_sampler *s, size_t limit, uint32_t *z)
{
    size_t n = s->n_history, begin = 0, end = 0; /* the match that reaches furthest */
    z[0] = 0;
    for (size_t i = 1; i < n; i++) {
        size_t len = i < end ? z[i - begin] : 0;
        if (i < end && len > end - i) len = end - i;
        while (len < limit && i + len < n && from_end(s, len) == from_end(s, i + len)) len++;
        z[i] = (uint32_t)len;
        if (i + len > end) {
            begin = i;
            end = i + len;
        }
    }
}

static void penalize_longest(minfer_sampler *s, const uint32_t *z)
{
    const minfer_sampling *p = &s->p;
    for (size_t i = 1; i < s->n_history; i++) {
        uint32_t *longest = &s->marks[from_end(s, i - 1)];
        if (z[i] >= (uint32_t)p->dry_allowed_length && z[i] > *longest) *longest = z[i];
    }
    for (size_t i = 1; i < s->n_history; i++) {
        int32_t id = from_end(s, i - 1);
        uint32_t len = s->marks[id];
        s->marks[id] = 0;
        if (len == 0 || (s->breaker && s->breaker[id])) continue;
        double penalty = p->dry_multiplier * mf_math_pow(p->dry_base, (double)len - p->dry_allowed_length);
        mf_stage_set(s, id, (double)s->logits[id] - penalty);
    }
}

minfer_status mf_stage_dry(minfer_sampler *s, minfer_error *err)
{
    if (s->p.dry_multiplier == 0 || s->n_history < 2) return MINFER_OK;
    MF_TRY(mf_stage_check_history(s, 0, err));
    size_t limit = comparable(s);
    if (limit == 0) return MINFER_OK;
    if (!mf_grow((void **)&s->match, &s->match_cap, s->n_history, sizeof *s->match)) return MF_NOMEM(err);
    match_lengths(s, limit, s->match);
    penalize_longest(s, s->match);
    return MINFER_OK;
}
