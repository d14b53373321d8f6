/* Memory, queue and rules of the test device. */
#include "device/test_device.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/device.h"
#include "device/fused_steps.h"

#include <string.h>
#include <sys/mman.h>

enum { MAX_BUFFERS = 1024, POISON = 0xFF };
static const size_t SPACE = (size_t)1 << 32;

typedef struct {
    uint8_t *p; /* NULL: free entry */
    size_t bytes;
} buffer;

typedef enum { OP_RUN, OP_COPY, OP_MOVE, OP_WRITE } op_kind;

typedef struct {
    op_kind kind;
    const mf_exec *x;
    void *program;
    mf_mem src, dst;
    mf_device *to;
    uint8_t *data; /* OP_WRITE: a copy of the host's bytes */
    size_t n;
    uint64_t ticket;
} operation;

typedef struct {
    cpu_device cpu; /* first: programs of the CPU run on it; its head is the device's */
    test_device_options o;
    test_device_stats stats;
    uint8_t *space;
    size_t used;
    buffer buffers[MAX_BUFFERS];
    operation *queue;
    size_t n_queue, cap_queue;
    uint64_t next_ticket, last_waited;
    int n_runs;
    mf_caps caps;
} test_device;

static test_device *self(mf_device *d)
{
    return (test_device *)d;
}

/* ---- memory
 * ------------------------------------------------------------------------------------------------------ */

/* One call for the whole space: it opens and closes around every operation. */
static void open_memory(test_device *d, bool open)
{
    if (d->used) mprotect(d->space, d->used, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static minfer_status reserve_space(test_device *d, minfer_error *err)
{
    void *p = mmap(NULL, SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return mf_fail(err, MINFER_ERR_NOMEM, "%s: cannot map %zu bytes", d->cpu.base.name, SPACE);
    d->space = p;
    return MINFER_OK;
}

/* Buffers lie one after the other, a poisoned page behind each; a place is used again when all behind it are
 * free. */
static minfer_status buffer_alloc(mf_device *dev, size_t bytes, void **buf, minfer_error *err)
{
    test_device *d = self(dev);
    size_t size = mf_align_up(bytes, 4096) + 4096;
    int i = 0;
    while (i < MAX_BUFFERS && d->buffers[i].p) i++;
    if (i == MAX_BUFFERS || size > SPACE - d->used)
        return mf_fail(err, MINFER_ERR_NOMEM, "%s: no place for %zu bytes", d->cpu.base.name, bytes);
    uint8_t *p = d->space + d->used;
    mprotect(p, size, PROT_READ | PROT_WRITE);
    memset(p, POISON, size);
    mprotect(p, size, PROT_NONE);
    d->used += size;
    d->buffers[i] = (buffer){p, size};
    *buf = p;
    return MINFER_OK;
}

static void buffer_free(mf_device *dev, void *buf)
{
    test_device *d = self(dev);
    for (int i = 0; i < MAX_BUFFERS; i++)
        if (d->buffers[i].p == buf) {
            test_device_poison(dev, buf, d->buffers[i].bytes);
            d->buffers[i].p = NULL;
        }
    d->used = 0;
    for (int i = 0; i < MAX_BUFFERS; i++) {
        const buffer *b = &d->buffers[i];
        if (b->p && (size_t)(b->p + b->bytes - d->space) > d->used)
            d->used = (size_t)(b->p + b->bytes - d->space);
    }
}

void test_device_poison(mf_device *dev, void *buf, size_t bytes)
{
    test_device *d = self(dev);
    open_memory(d, true);
    memset(buf, POISON, bytes);
    open_memory(d, false);
}

int test_device_buffers(mf_device *dev)
{
    int n = 0;
    for (int i = 0; i < MAX_BUFFERS; i++) n += self(dev)->buffers[i].p != NULL;
    return n;
}

/* ---- queue
 * ------------------------------------------------------------------------------------------------------- */

static minfer_status perform(test_device *d, operation *op, minfer_error *err)
{
    minfer_status st = MINFER_OK;
    open_memory(d, true);
    if (op->kind == OP_RUN) {
        d->n_runs++;
        if (d->n_runs == d->o.fail_run_at)
            st = mf_fail(err, MINFER_ERR_STATE, "%s: run %d fails on request", d->cpu.base.name, d->n_runs);
        else
            st = cpu_program_run(&d->cpu, op->x, op->program, err);
    } else if (op->kind == OP_MOVE) {
        memmove((uint8_t *)op->dst.buf + op->dst.offset, (const uint8_t *)op->src.buf + op->src.offset,
                op->n);
    } else if (op->kind == OP_COPY) {
        st = op->to->ops->write(op->to, op->dst, (const uint8_t *)op->src.buf + op->src.offset, op->n, err);
    } else {
        memcpy((uint8_t *)op->dst.buf + op->dst.offset, op->data, op->n);
        mf_free(op->data);
    }
    open_memory(d, false);
    d->stats.drained++;
    return st;
}

/* Runs queued operations up to and including `ticket`. After a failure the rest is dropped. */
static minfer_status drain(test_device *d, uint64_t ticket, minfer_error *err)
{
    minfer_status st = MINFER_OK;
    size_t done = 0;
    for (; done < d->n_queue && d->queue[done].ticket <= ticket; done++) {
        if (st == MINFER_OK)
            st = perform(d, &d->queue[done], err);
        else if (d->queue[done].kind == OP_WRITE)
            mf_free(d->queue[done].data);
    }
    d->n_queue -= done;
    if (d->n_queue) memmove(d->queue, d->queue + done, d->n_queue * sizeof *d->queue);
    return st;
}

static minfer_status enqueue(test_device *d, operation op, uint64_t *ticket, minfer_error *err)
{
    if (!mf_grow((void **)&d->queue, &d->cap_queue, d->n_queue + 1, sizeof *d->queue)) return MF_NOMEM(err);
    op.ticket = ++d->next_ticket;
    if (ticket) *ticket = op.ticket;
    d->queue[d->n_queue++] = op;
    return MINFER_OK;
}

static minfer_status write(mf_device *dev, mf_mem dst, const void *src, size_t n, minfer_error *err)
{
    test_device *d = self(dev);
    uint8_t *data = mf_malloc(n);
    d->stats.writes++;
    if (!data) return MF_NOMEM(err);
    memcpy(data, src, n);
    minfer_status st = enqueue(d, (operation){.kind = OP_WRITE, .dst = dst, .data = data, .n = n}, NULL, err);
    if (st != MINFER_OK) mf_free(data);
    return st;
}

static minfer_status read(mf_device *dev, mf_mem src, void *dst, size_t n, minfer_error *err)
{
    test_device *d = self(dev);
    d->stats.reads++;
    MF_TRY(drain(d, UINT64_MAX, err));
    open_memory(d, true);
    memcpy(dst, (const uint8_t *)src.buf + src.offset, n);
    open_memory(d, false);
    return MINFER_OK;
}

/* The target is poisoned now and written late: a reader that does not wait meets NaN. */
static minfer_status copy_across(mf_device *dev, mf_mem src, mf_device *to, mf_mem dst, size_t n,
                                 uint64_t *ticket, minfer_error *err)
{
    test_device *d = self(dev);
    uint8_t *bad = mf_malloc(n);
    d->stats.copies++;
    if (!bad) return MF_NOMEM(err);
    memset(bad, POISON, n);
    minfer_status st = to->ops->write(to, dst, bad, n, err);
    mf_free(bad);
    if (st != MINFER_OK) return st;
    return enqueue(d, (operation){.kind = OP_COPY, .src = src, .to = to, .dst = dst, .n = n}, ticket, err);
}

static minfer_status wait(mf_device *dev, uint64_t ticket, minfer_error *err)
{
    test_device *d = self(dev);
    d->stats.waits++;
    if (ticket == 0 || ticket > d->next_ticket) d->stats.waits_without_copy++;
    return drain(d, ticket, err);
}

static minfer_status move(mf_device *dev, mf_mem dst, mf_mem src, size_t n, minfer_error *err)
{
    return enqueue(self(dev), (operation){.kind = OP_MOVE, .src = src, .dst = dst, .n = n}, NULL, err);
}

static minfer_status sync(mf_device *dev, minfer_error *err)
{
    self(dev)->stats.syncs++;
    return drain(self(dev), UINT64_MAX, err);
}

/* ---- what it runs
 * ------------------------------------------------------------------------------------------------- */

static bool supports(const mf_device *dev, const mf_graph *g, const mf_node *n)
{
    (void)g;
    return mf_caps_has(&((const test_device *)(const void *)dev)->caps, n);
}

/* Weights are copied into the device's own memory. */
static minfer_status weight_register(mf_device *dev, const mf_weight *w, const void *data, size_t bytes,
                                     minfer_error *err)
{
    test_device *d = self(dev);
    void *own;
    if (cpu_weight_find(&d->cpu, w->name)) return MINFER_OK;
    MF_TRY(buffer_alloc(dev, bytes, &own, err));
    open_memory(d, true);
    memcpy(own, data, bytes);
    open_memory(d, false);
    return cpu_device_ops.weight_register(dev, w, own, bytes, err);
}

/* With a name goes the device's copy of the bytes. */
static void weights_forget(mf_device *dev, const char *prefix)
{
    test_device *d = self(dev);
    for (size_t i = 0; i < d->cpu.n_weights; i++)
        if (strncmp(d->cpu.weights[i]->name, prefix, strlen(prefix)) == 0)
            buffer_free(dev, (void *)(uintptr_t)d->cpu.weights[i]->data);
    cpu_device_ops.weights_forget(dev, prefix);
}

static minfer_status prepare(mf_device *dev, const mf_exec *x, mf_id a, mf_id b, void **program,
                             minfer_error *err)
{
    cpu_program *p = NULL;
    open_memory(self(dev),
                true); /* compiling clears the padding of activations and reads frequency factors */
    minfer_status st = cpu_program_make(&self(dev)->cpu, x, a, b, &p, err);
    open_memory(self(dev), false);
    *program = p;
    return st;
}

static minfer_status run(mf_device *dev, const mf_exec *x, void *program, minfer_error *err)
{
    self(dev)->stats.runs++;
    return enqueue(self(dev), (operation){.kind = OP_RUN, .x = x, .program = program}, NULL, err);
}

static void discard(mf_device *dev, void *program)
{
    drain(self(dev), UINT64_MAX, NULL);
    cpu_program_free(program);
}

static void close_device(mf_device *dev)
{
    test_device *d = self(dev);
    drain(d, UINT64_MAX, NULL);
    if (d->space) munmap(d->space, SPACE);
    mf_free(d->queue);
    cpu_device_ops.close(dev);
}

test_device_stats *test_device_get_stats(mf_device *d)
{
    return &self(d)->stats;
}

const mf_caps *test_device_caps(const mf_device *d)
{
    return &((const test_device *)(const void *)d)->caps;
}

static const mf_device_ops *device_ops(void)
{
    static mf_device_ops ops;
    ops = cpu_device_ops;
    ops.supports = supports;
    ops.buffer_alloc = buffer_alloc;
    ops.buffer_free = buffer_free;
    ops.write = write;
    ops.read = read;
    ops.copy_across = copy_across;
    ops.move = move;
    ops.wait = wait;
    ops.sync = sync;
    ops.weight_register = weight_register;
    ops.weights_forget = weights_forget;
    ops.prepare = prepare;
    ops.run = run;
    ops.discard = discard;
    ops.close = close_device;
    return &ops;
}

static mf_caps capabilities(const test_device_options *o)
{
    mf_caps c = mf_cpu_caps;
    static const mf_op fused[] = {MF_OP_FUSED_QKV, MF_OP_FUSED_QKV_NORM, MF_OP_FUSED_FFN};
    for (size_t i = 0; i < sizeof fused / sizeof *fused; i++)
        if (o->fused_ops & 1u << fused[i]) c.types[fused[i]] = c.types[MF_OP_MATMUL];
    if (o->fused_ops & 1u << MF_OP_QKV_BIAS_ROPE_STORE)
        c.types[MF_OP_QKV_BIAS_ROPE_STORE] = c.types[MF_OP_MATMUL];
    if (o->no_swiglu) c.types[MF_OP_SWIGLU] = 0;
    c.explicit_windows = !o->causal_only;
    c.fused_ops = o->fused_ops;
    return c;
}

minfer_status test_device_open(const test_device_options *o, mf_device **out, minfer_error *err)
{
    test_device *d = mf_calloc(1, sizeof *d);
    *out = NULL;
    if (!d) return MF_NOMEM(err);
    d->o = *o;
    d->caps = capabilities(o);
    d->cpu.base = (mf_device){.ops = device_ops(),
                              .name = o->name ? o->name : "test",
                              .id = 100,
                              .priority = o->priority ? o->priority : 200,
                              .budget = o->budget,
                              .explicit_windows = d->caps.explicit_windows,
                              .fused_ops = o->fused_ops};
    d->cpu.emitters = test_emitters();
    cpu_kernels_select(&d->cpu.kernels, CPU_TIER_SCALAR);
    minfer_status st = reserve_space(d, err);
    if (st == MINFER_OK) st = mf_pool_create(1, &d->cpu.pool, err);
    if (st != MINFER_OK) {
        if (d->space) munmap(d->space, SPACE);
        mf_free(d);
        return st;
    }
    *out = &d->cpu.base;
    return MINFER_OK;
}
