/* What all sources of drafts share. */
#include "runtime/draft.h"

_Static_assert((int)MINFER_DRAFT_MAX == (int)MF_DEPTH_MAX, "the public limit is the table's");

void minfer_draft_options_init(minfer_draft_options *o)
{
    *o = (minfer_draft_options){.n_max = 2};
}

minfer_status mf_draft_init(minfer_draft *d, const mf_draft_ops *ops, const minfer_draft_options *o,
                            minfer_error *err)
{
    minfer_draft_options defaults;
    minfer_draft_options_init(&defaults);
    if (!o) o = &defaults;
    if (o->n_max < 1 || o->n_max > MINFER_DRAFT_MAX)
        return mf_fail(err, MINFER_ERR_ARG, "drafts of %d tokens; 1 to %d are possible", o->n_max,
                       MINFER_DRAFT_MAX);
    d->ops = ops;
    d->adaptive = o->adaptive;
    mf_depth_init(&d->depth, o->n_max);
    return MINFER_OK;
}

int32_t mf_draft_depth(minfer_draft *d, int32_t kind)
{
    return d->adaptive ? mf_depth_choose(&d->depth, kind) : d->depth.most;
}

void minfer_draft_free(minfer_draft *d)
{
    if (d) d->ops->free(d);
}
