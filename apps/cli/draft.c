/* The source of drafts that the options ask for. */
#include "cli/draft.h"

#include "common/model.h"
#include "common/term.h"
#include "common/times.h"

#include <stdio.h>

/* What --spec-draft-n is when it is not given. A lookup drafts freely, and an adaptive depth finds its own.
 */
enum { STATIC_DEPTH = 2, FREE_DEPTH = 8 };

minfer_status cli_draft_check(const app_options *o, minfer_error *err)
{
    const char *lone = o->spec_draft_n          ? "--spec-draft-n"
                       : o->spec_draft_adaptive ? "--spec-draft-adaptive"
                                                : NULL;
    if (o->spec_draft && o->lookup)
        return mf_fail(err, MINFER_ERR_ARG, "--spec-draft and --lookup: there is one source of drafts");
    if (lone && !o->spec_draft && !o->lookup)
        return mf_fail(err, MINFER_ERR_ARG, "%s has no place without --spec-draft or --lookup", lone);
    return MINFER_OK;
}

static minfer_draft_options options_of(const app_options *o)
{
    minfer_draft_options d;
    minfer_draft_options_init(&d);
    /* How far a repetition goes differs from place to place: without a depth asked for it is measured. */
    d.adaptive = o->spec_draft_adaptive || (o->lookup && !o->spec_draft_n);
    d.n_max = o->spec_draft_n ? o->spec_draft_n : d.adaptive ? FREE_DEPTH : STATIC_DEPTH;
    return d;
}

static minfer_status open_model(cli_draft *d, const app_options *o, const minfer_model *target,
                                const minfer_draft_options *options, size_t least, size_t wanted,
                                minfer_error *err)
{
    app_options own = *o;
    char *path;
    own.model = o->spec_draft;
    own.bare = false;
    MF_TRY(app_model_path(&own, &path, err));
    minfer_status st = minfer_model_open_draft(path, app_progress, NULL, &d->model, err);
    mf_free(path);
    MF_TRY(st);
    MF_TRY(app_engine_create(&own, d->model, least, wanted, &d->engine, err));
    return minfer_draft_create_model(d->engine, target, options, &d->draft, err);
}

static void describe(const cli_draft *d, const minfer_draft_options *o)
{
    if (!d->draft)
        app_note("drafts: none");
    else
        app_note("drafts: by %s, %s%d tokens", d->model ? "the model above" : "lookup",
                 o->adaptive ? "adaptive, up to " : "", o->n_max);
}

minfer_status cli_draft_open(cli_draft *d, const app_options *o, const minfer_model *target, size_t least,
                             size_t wanted, minfer_error *err)
{
    minfer_draft_options options = options_of(o);
    minfer_status st = MINFER_OK;
    if (o->spec_draft) st = open_model(d, o, target, &options, least, wanted, err);
    if (o->lookup) st = minfer_draft_create_lookup(&options, &d->draft, err);
    if (st == MINFER_OK && o->verbose) describe(d, &options);
    return o->spec_draft && st != MINFER_OK ? mf_fail_prefix(err, st, "--spec-draft") : st;
}

void cli_draft_close(cli_draft *d)
{
    minfer_draft_free(d->draft);
    app_engine_free(d->engine);
    minfer_model_free(d->model);
}

void cli_draft_line(const minfer_generate_result *r)
{
    fprintf(stderr, "[%zu rounds; %zu tokens drafted, %zu accepted (%.0f %%); %.2f tokens per round]\n",
            r->n_rounds, r->n_drafted, r->n_accepted,
            r->n_drafted ? 100.0 * (double)r->n_accepted / (double)r->n_drafted : 0.0,
            r->n_rounds ? (double)(r->n_accepted + r->n_rounds) / (double)r->n_rounds : 0.0);
}
