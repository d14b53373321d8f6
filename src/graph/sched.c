/* Steps of a graph, made once and executed many times. */
#include "graph/sched.h"

#include <string.h>

bool mf_node_executes(const mf_node *n)
{
    return !n->dead && n->op != MF_OP_INPUT && n->op != MF_OP_VIEW && n->op != MF_OP_RESHAPE &&
           n->op != MF_OP_KVCACHE_LOAD;
}

static minfer_status push(mf_sched *s, mf_step step, minfer_error *err)
{
    if (!mf_grow((void **)&s->steps, &s->cap, (size_t)s->n_steps + 1, sizeof *s->steps)) return MF_NOMEM(err);
    s->steps[s->n_steps++] = step;
    return MINFER_OK;
}

/* Copies of what nodes [a, b) produced (inputs count as produced before everything) and other devices read.
 */
static minfer_status push_copies(mf_sched *s, const mf_exec *x, mf_id a, mf_id b, bool inputs,
                                 minfer_error *err)
{
    for (int32_t i = 0; i < x->plan->n_staged; i++) {
        mf_id v = x->plan->staged[i].node, root = mf_graph_root(x->graph, v);
        bool is_input = x->graph->nodes[root].op == MF_OP_INPUT;
        if (is_input != inputs || (!inputs && (root < a || root >= b))) continue;
        MF_TRY(
            push(s, (mf_step){.kind = MF_STEP_COPY, .device = x->graph->nodes[v].device, .staged = i}, err));
    }
    return MINFER_OK;
}

static bool reads(const mf_node *n, mf_id v)
{
    for (int32_t k = 0; k < n->n_src; k++)
        if (n->src[k] == v) return true;
    return false;
}

/* The node that first reads staged value i on its device. */
static mf_id first_reader(const mf_exec *x, int32_t i)
{
    const mf_staged *st = &x->plan->staged[i];
    for (mf_id n = st->node + 1; n < x->graph->n_nodes; n++) {
        const mf_node *node = &x->graph->nodes[n];
        if (mf_node_executes(node) && node->device == st->device && reads(node, st->node)) return n;
    }
    return x->graph->n_nodes;
}

static minfer_status push_waits(mf_sched *s, const mf_exec *x, const mf_id *reader, mf_id at,
                                minfer_error *err)
{
    for (int32_t i = 0; i < x->plan->n_staged; i++)
        if (reader[i] == at)
            MF_TRY(push(s, (mf_step){.kind = MF_STEP_WAIT, .device = x->plan->staged[i].device, .staged = i},
                        err));
    return MINFER_OK;
}

static bool has_wait(const mf_exec *x, const mf_id *reader, mf_id at)
{
    for (int32_t i = 0; i < x->plan->n_staged; i++)
        if (reader[i] == at) return true;
    return false;
}

static minfer_status check_place(const mf_exec *x, const mf_node *n, minfer_error *err)
{
    const mf_loc *l = &x->plan->value[n->id];
    if (l->device == n->device) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_STATE, "node %s runs on %s, its buffer is on %s", n->name,
                   x->alloc->devices[n->device]->name, x->alloc->devices[l->device]->name);
}

static mf_id next_executable(const mf_graph *g, mf_id i)
{
    while (i < g->n_nodes && !mf_node_executes(&g->nodes[i])) i++;
    return i;
}

/* One split: nodes [a, b) of one device, cut into runs at the nodes that need a wait. */
static minfer_status push_split(mf_sched *s, const mf_exec *x, const mf_id *reader, mf_id a, mf_id b,
                                minfer_error *err)
{
    int32_t device = x->graph->nodes[a].device;
    s->n_splits++;
    for (mf_id from = a; from < b;) {
        MF_TRY(push_waits(s, x, reader, from, err));
        mf_id to = from + 1;
        while (to < b && !has_wait(x, reader, to)) to++;
        MF_TRY(push(s,
                    (mf_step){.kind = MF_STEP_RUN,
                              .device = device,
                              .a = from,
                              .b = to,
                              .staged = -1,
                              .split = s->n_splits - 1},
                    err));
        from = to;
    }
    return push_copies(s, x, a, b, false, err);
}

static minfer_status push_all(mf_sched *s, const mf_exec *x, const mf_id *reader, minfer_error *err)
{
    const mf_graph *g = x->graph;
    MF_TRY(push_copies(s, x, 0, 0, true, err));
    for (mf_id a = next_executable(g, 0), b; a < g->n_nodes; a = next_executable(g, b)) {
        for (b = a;
             b < g->n_nodes && (!mf_node_executes(&g->nodes[b]) || g->nodes[b].device == g->nodes[a].device);
             b++)
            if (mf_node_executes(&g->nodes[b])) MF_TRY(check_place(x, &g->nodes[b], err));
        MF_TRY(push_split(s, x, reader, a, b, err));
    }
    return push_waits(s, x, reader, g->n_nodes, err);
}

minfer_status mf_sched_build(mf_sched *s, const mf_exec *x, minfer_error *err)
{
    *s = (mf_sched){0};
    size_t n = (size_t)x->plan->n_staged;
    mf_id *reader = mf_calloc(n, sizeof *reader);
    s->staged = mf_calloc(n, sizeof *s->staged);
    minfer_status st = reader && s->staged ? MINFER_OK : MF_NOMEM(err);
    for (int32_t i = 0; i < x->plan->n_staged && st == MINFER_OK; i++) reader[i] = first_reader(x, i);
    if (st == MINFER_OK) st = push_all(s, x, reader, err);
    mf_free(reader);
    if (st != MINFER_OK) mf_sched_free(s, x);
    return st;
}

static void discard(mf_step *step, const mf_exec *x)
{
    if (!step->program) return;
    mf_device *d = x->alloc->devices[step->device];
    d->ops->discard(d, step->program);
    step->program = NULL;
}

void mf_sched_free(mf_sched *s, const mf_exec *x)
{
    for (int32_t i = 0; i < s->n_steps; i++) discard(&s->steps[i], x);
    mf_free(s->steps);
    mf_free(s->staged);
    *s = (mf_sched){0};
}

static minfer_status fill_inputs(const mf_exec *x, const mf_inputs *in, minfer_error *err)
{
    for (int i = 0; i < MF_INPUT_COUNT; i++) {
        mf_id id = x->graph->inputs[i];
        if (id < 0) continue;
        const mf_node *n = &x->graph->nodes[id];
        if (!in->data[i] || (int64_t)in->n[i] != n->shape[0])
            return mf_fail(err, MINFER_ERR_STATE, "input %s has %zu values, the graph reads %lld", n->name,
                           in->data[i] ? in->n[i] : 0, (long long)n->shape[0]);
        mf_device *d = x->alloc->devices[n->device];
        MF_TRY(
            d->ops->write(d, mf_exec_value(x, id, n->device), in->data[i], in->n[i] * sizeof(int32_t), err));
    }
    return MINFER_OK;
}

/* Programs hold addresses: they are made again when any arena has moved since. */
static uint64_t generation(const mf_alloc *a)
{
    uint64_t sum = 1;
    for (int32_t d = 0; d < a->n_devices; d++) sum += a->arena[d].generation;
    return sum;
}

static minfer_status check_waited(const mf_sched *s, const mf_exec *x, const mf_step *step, minfer_error *err)
{
    for (int32_t i = 0; i < x->plan->n_staged; i++) {
        if (x->plan->staged[i].device != step->device || s->staged[i].waited) continue;
        for (mf_id n = step->a; n < step->b; n++)
            if (mf_node_executes(&x->graph->nodes[n]) && reads(&x->graph->nodes[n], x->plan->staged[i].node))
                return mf_fail(err, MINFER_ERR_STATE,
                               "node %s reads %s, whose copy to %s has not been waited for",
                               x->graph->nodes[n].name, x->graph->nodes[x->plan->staged[i].node].name,
                               x->alloc->devices[step->device]->name);
    }
    return MINFER_OK;
}

static minfer_status step_run(mf_sched *s, const mf_exec *x, mf_step *step, minfer_error *err)
{
    mf_device *d = x->alloc->devices[step->device];
    uint64_t now = generation(x->alloc);
    MF_TRY(check_waited(s, x, step, err));
    if (step->program && step->generation != now) discard(step, x);
    if (!step->program) MF_TRY(d->ops->prepare(d, x, step->a, step->b, &step->program, err));
    step->generation = now;
    return d->ops->run(d, x, step->program, err);
}

static minfer_status step_copy(mf_sched *s, const mf_exec *x, mf_step *step, minfer_error *err)
{
    const mf_staged *v = &x->plan->staged[step->staged];
    mf_device *from = x->alloc->devices[step->device], *to = x->alloc->devices[v->device];
    mf_staged_state *state = &s->staged[step->staged];
    mf_mem src = mf_exec_value(x, v->node, step->device), dst = mf_exec_value(x, v->node, v->device);
    MF_TRY(from->ops->copy_across(from, src, to, dst, v->loc.bytes, &state->ticket, err));
    state->copied = true;
    return MINFER_OK;
}

static minfer_status step_wait(mf_sched *s, const mf_exec *x, mf_step *step, minfer_error *err)
{
    const mf_node *v = &x->graph->nodes[x->plan->staged[step->staged].node];
    mf_device *from = x->alloc->devices[v->device];
    mf_staged_state *state = &s->staged[step->staged];
    if (!state->copied)
        return mf_fail(err, MINFER_ERR_STATE, "a wait for %s before its copy from %s", v->name, from->name);
    MF_TRY(from->ops->wait(from, state->ticket, err));
    state->waited = true;
    return MINFER_OK;
}

static mf_time *split_time(mf_step_times *t, const mf_step *step)
{
    int32_t i = 0;
    while (i < t->n_splits && (t->split[i].index != step->split || t->split[i].device != step->device)) i++;
    if (i == MF_TIME_SPLITS) return &t->split[i - 1].time;
    if (i == t->n_splits) {
        t->n_splits++;
        t->split[i].index = step->split;
        t->split[i].device = step->device;
    }
    return &t->split[i].time;
}

static void count_step(const mf_sched *s, const mf_exec *x, const mf_step *step, int64_t start)
{
    mf_time *t = step->kind == MF_STEP_RUN    ? split_time(s->times, step)
                 : step->kind == MF_STEP_COPY ? &s->times->copies
                                              : &s->times->waits;
    if (step->kind == MF_STEP_COPY) t->bytes += x->plan->staged[step->staged].loc.bytes;
    t->count++;
    mf_time_lap(t, start);
}

static minfer_status execute(mf_sched *s, const mf_exec *x, minfer_error *err)
{
    static minfer_status (*const kinds[])(mf_sched *, const mf_exec *, mf_step *, minfer_error *) = {
        [MF_STEP_RUN] = step_run, [MF_STEP_COPY] = step_copy, [MF_STEP_WAIT] = step_wait};
    for (int32_t i = 0; i < s->n_steps; i++) {
        mf_step *step = &s->steps[i];
        int64_t start = s->times ? mf_clock_ns() : 0;
        MF_TRY(kinds[step->kind](s, x, step, err));
        if (s->times) count_step(s, x, step, start);
    }
    return MINFER_OK;
}

minfer_status mf_sched_run(mf_sched *s, const mf_exec *x, const mf_inputs *in, minfer_error *err)
{
    if (x->plan->n_staged) memset(s->staged, 0, (size_t)x->plan->n_staged * sizeof *s->staged);
    int64_t start = s->times ? mf_clock_ns() : 0;
    minfer_status st = fill_inputs(x, in, err);
    if (s->times) {
        s->times->inputs.count++;
        mf_time_lap(&s->times->inputs, start);
    }
    if (st == MINFER_OK) st = execute(s, x, err);
    for (int32_t d = 0; d < x->alloc->n_devices; d++) {
        minfer_status sync = x->alloc->devices[d]->ops->sync(x->alloc->devices[d],
                                                             st == MINFER_OK ? err : NULL);
        if (st == MINFER_OK) st = sync;
    }
    return st;
}

static bool trace_split(const mf_exec *x, int32_t index, const mf_step *first, const mf_step *last,
                        mf_buf *out)
{
    const mf_graph *g = x->graph;
    int32_t n = 0;
    for (mf_id i = first->a; i < last->b; i++) n += mf_node_executes(&g->nodes[i]);
    return mf_buf_printf(out, "split %d: %s, %d nodes, %s .. %s\n", index,
                         x->alloc->devices[first->device]->name, n, g->nodes[first->a].name,
                         g->nodes[last->b - 1].name);
}

static bool trace_ops(const mf_exec *x, int32_t device, mf_buf *out)
{
    int32_t count[MF_OP_COUNT] = {0}, total = 0;
    for (mf_id i = 0; i < x->graph->n_nodes; i++) {
        const mf_node *n = &x->graph->nodes[i];
        if (n->device != device || !mf_node_executes(n)) continue;
        count[n->op]++;
        total++;
    }
    bool ok = mf_buf_printf(out, "%s: %d nodes", x->alloc->devices[device]->name, total);
    for (int op = 0; op < MF_OP_COUNT && ok; op++)
        if (count[op]) ok = mf_buf_printf(out, ", %s %d", mf_op_table[op].name, count[op]);
    return ok && mf_buf_char(out, '\n');
}

bool mf_sched_trace(const mf_sched *s, const mf_exec *x, mf_buf *out)
{
    bool ok = mf_buf_printf(out, "graph %llu: %d nodes, %d splits, %d staged values\n",
                            (unsigned long long)x->graph->uid, x->graph->n_nodes, s->n_splits,
                            x->plan->n_staged);
    const mf_step *first = NULL, *last = NULL;
    int32_t index = 0;
    for (int32_t i = 0; i < s->n_steps && ok; i++) {
        const mf_step *step = &s->steps[i];
        if (step->kind != MF_STEP_RUN) continue;
        if (first && step->device != first->device) {
            ok = trace_split(x, index++, first, last, out);
            first = NULL;
        }
        if (!first) first = step;
        last = step;
    }
    if (first && ok) ok = trace_split(x, index, first, last, out);
    for (int32_t d = 0; d < x->alloc->n_devices && ok; d++) ok = trace_ops(x, d, out);
    return ok;
}
