/* Counting and telling the times of forward passes. */
#include "runtime/times.h"

#include <stdio.h>

mf_pass_times *mf_times_begin(mf_times *t, mf_device *const *devices, int32_t n_devices, int32_t n_tokens)
{
    if (!t) return NULL;
    mf_pass_times *p = n_tokens == 1 ? &t->decode : &t->prefill;
    for (int32_t d = 0; d < n_devices; d++) devices[d]->times = &p->ops[d];
    return p;
}

typedef struct teller {
    minfer_time row; /* kind, decode and device of the rows that follow */
    minfer_time_fn *fn;
    void *user;
} teller;

static void tell(teller *t, const char *name, const mf_time *time)
{
    if (!time->count) return;
    t->row.name = name;
    t->row.count = time->count;
    t->row.ns = time->ns;
    t->row.bytes = time->bytes;
    t->row.macs = time->macs;
    t->fn(t->user, &t->row);
}

static void tell_splits(teller *t, const mf_step_times *s, mf_device *const *devices)
{
    for (int32_t i = 0; i < s->n_splits; i++) {
        char name[32];
        snprintf(name, sizeof name, "split %d%s", s->split[i].index,
                 i == MF_TIME_SPLITS - 1 ? " and later" : "");
        t->row.device = devices[s->split[i].device]->name;
        tell(t, name, &s->split[i].time);
    }
    t->row.device = "";
}

/* The steps, which add up to the pass: what is left is the rest. */
static void tell_steps(teller *t, const mf_pass_times *p, mf_device *const *devices)
{
    const mf_step_times *s = &p->steps;
    mf_time rest = p->pass;
    rest.ns -= p->plan.ns + s->inputs.ns + s->copies.ns + s->waits.ns;
    for (int32_t i = 0; i < s->n_splits; i++) rest.ns -= s->split[i].time.ns;
    tell(t, "plan", &p->plan);
    tell(t, "inputs", &s->inputs);
    tell_splits(t, s, devices);
    tell(t, "copies", &s->copies);
    tell(t, "waits", &s->waits);
    tell(t, "rest", &rest);
}

static const char *slot_name(int slot)
{
    return slot == MF_TIME_QUANTIZE  ? "quantize"
           : slot == MF_TIME_BARRIER ? "barrier"
                                     : mf_op_table[slot].name;
}

void mf_times_tell(const mf_pass_times *p, bool decode, mf_device *const *devices, int32_t n_devices,
                   minfer_time_fn *fn, void *user)
{
    teller t = {.row = {.kind = MINFER_TIME_PASS, .decode = decode, .device = ""}, .fn = fn, .user = user};
    tell(&t, decode ? "decode" : "prefill", &p->pass);
    t.row.kind = MINFER_TIME_STEP;
    tell_steps(&t, p, devices);
    t.row.kind = MINFER_TIME_OP;
    for (int32_t d = 0; d < n_devices; d++) {
        t.row.device = devices[d]->name;
        for (int i = 0; i < MF_TIME_SLOTS; i++) tell(&t, slot_name(i), &p->ops[d].slot[i]);
    }
}
