/* Estimates behind the adaptive depth. */
#include "runtime/depth.h"

static const double fade = 0.97;     /* of counts, per round: about 33 rounds are remembered */
static const double prior_tries = 2; /* what is believed before anything was seen counts this much: */
static const double prior_share[MF_DEPTH_KINDS] = {0.5, 0.7, 0.85, 0.95}; /* at the first place; */
static const double prior_growth = 0.25; /* at the next ones less doubt by this, for all before were right */
static const double better = 0.5;        /* weight of a measured time below the estimate ... */
static const double worse = 0.1;         /* ... and above it, where most of what disturbs lies; */
static const double worst = 2;           /* such a time counts as at most this much of the estimate */
static const double unknown_slope = 0.2; /* of a plain pass, per drafted token */
/* Rounds after which the plain pass is measured again, and after which the cost of another one is not known
 * any more: what was measured while something else was running would keep a depth from ever being tried. */
enum { PLAIN_EVERY = 128, FORGET = 40 };

void mf_depth_init(mf_depth *d, int32_t most)
{
    *d = (mf_depth){.most = most};
}

static void update(double *estimate, double ns)
{
    if (*estimate > 0 && ns > worst * *estimate) ns = worst * *estimate;
    *estimate = *estimate > 0 ? *estimate + (ns < *estimate ? better : worse) * (ns - *estimate) : ns;
}

void mf_depth_saw_pass(mf_depth *d, int32_t n, int64_t ns)
{
    update(&d->pass_ns[n], (double)(ns > 0 ? ns : 1));
    d->age[n] = 0;
}

void mf_depth_saw_draft(mf_depth *d, int32_t n, int64_t ns)
{
    update(&d->draft_ns, (double)(ns > 0 ? ns : 1) / n);
}

void mf_depth_saw_token(mf_depth *d, int32_t kind, int32_t place, bool right)
{
    d->counts[kind][place].tries += 1;
    d->counts[kind][place].hits += right;
}

double mf_depth_tokens(const mf_depth *d, int32_t kind, int32_t n)
{
    double tokens = 1, survival = 1, prior = prior_share[kind];
    for (int32_t i = 0; i < n; i++) {
        const mf_depth_count *c = &d->counts[kind][i];
        double share = (c->hits + prior_tries * prior) / (c->tries + prior_tries);
        survival *= share;
        tokens += survival;
        prior = share + prior_growth * (1 - share);
    }
    return tokens;
}

/* Between two known passes on their line; beyond the last known one on the line from the plain pass. */
static double pass_ns(const mf_depth *d, int32_t n)
{
    int32_t a = n, b = n;
    while (a > 0 && !(d->pass_ns[a] > 0)) a--;
    while (b <= d->most && !(d->pass_ns[b] > 0)) b++;
    if (a == n) return d->pass_ns[n];
    double plain = d->pass_ns[0], low = d->pass_ns[a];
    double slope = a > 0 ? (low - plain) / a : unknown_slope * plain;
    if (b <= d->most) slope = (d->pass_ns[b] - low) / (b - a);
    return low + slope * (n - a);
}

double mf_depth_ns(const mf_depth *d, int32_t n)
{
    return pass_ns(d, n) + n * d->draft_ns;
}

int32_t mf_depth_choose(mf_depth *d, int32_t kind)
{
    int32_t best = 0;
    for (int32_t i = 0; i < d->most; i++) {
        d->counts[kind][i].tries *= fade;
        d->counts[kind][i].hits *= fade;
    }
    for (int32_t n = 1; n <= d->most; n++)
        if (++d->age[n] > FORGET) d->pass_ns[n] = 0;
    if (!(d->pass_ns[0] > 0) || ++d->age[0] > PLAIN_EVERY) return 0;
    double rate = 1 / mf_depth_ns(d, 0);
    for (int32_t n = 1; n <= d->most; n++) {
        double r = mf_depth_tokens(d, kind, n) / mf_depth_ns(d, n);
        if (r > rate) {
            rate = r;
            best = n;
        }
    }
    return best;
}
