/* A grammar run byte by byte. */
#include "common.h"

static void start_sets(machine *m, uint32_t horizon)
{
    minfer_error err = {0};
    assert_ok(mf_gsets_init(&m->sets, &m->p, horizon, &err), &err);
    machine_start(m);
}

void machine_open(machine *m, const char *gbnf, uint32_t horizon)
{
    minfer_error err = {0};
    minfer_status st = mf_program_read(&m->p, gbnf, strlen(gbnf), NULL, &err);
    if (st != MINFER_OK) print_error("%s\n", gbnf);
    assert_ok(st, &err);
    start_sets(m, horizon);
}

void machine_open_schema(machine *m, const char *schema)
{
    minfer_error err = {0};
    mf_buf text = {0};
    minfer_status st = mf_schema_read(schema, strlen(schema), &text, &m->p, &err);
    if (st != MINFER_OK) print_error("%s\n%s\n", schema, text.data ? text.data : "");
    assert_ok(st, &err);
    mf_buf_free(&text);
    start_sets(m, 8);
}

void machine_close(machine *m)
{
    mf_gsets_free(&m->sets);
    mf_program_free(&m->p);
}

void machine_start(machine *m)
{
    minfer_error err = {0};
    assert_ok(mf_gsets_start(&m->sets, &m->set, &err), &err);
}

void machine_byte(machine *m, uint8_t byte)
{
    minfer_error err = {0};
    m->sets.effort = 0;
    assert_ok(mf_gsets_step(&m->sets, m->set, m->p.class_of[byte], &m->set, &err), &err);
}

bool machine_begins(machine *m, const char *text, size_t n)
{
    machine_start(m);
    for (size_t i = 0; i < n; i++) machine_byte(m, (uint8_t)text[i]);
    return m->set != MF_GSET_EMPTY;
}

bool machine_accepts(machine *m, const char *text, size_t n)
{
    return machine_begins(m, text, n) && mf_gsets_can_end(&m->sets, m->set);
}

/* A byte that can come next, all classes being equally likely, all bytes of a class, too. */
static uint8_t random_byte(machine *m, mf_rng *r)
{
    uint32_t open[256], n = 0, before = m->set;
    for (uint32_t c = 0; c < m->p.n_classes; c++) {
        machine_byte(m, m->p.example[c]);
        if (m->set != MF_GSET_EMPTY) open[n++] = c;
        m->set = before;
    }
    assert_true(n > 0);
    uint32_t class = open[below(r, n)];
    for (;;) {
        uint8_t b = (uint8_t)below(r, 256);
        if (m->p.class_of[b] == class) return b;
    }
}

bool machine_random(machine *m, mf_rng *r, double ending, size_t most, mf_buf *out)
{
    machine_start(m);
    out->len = 0;
    for (;;) {
        bool may_end = mf_gsets_can_end(&m->sets, m->set);
        if (may_end && (!mf_gsets_can_go_on(&m->sets, m->set) || mf_rng_f64(r) < ending)) return true;
        if (out->len == most) return may_end;
        uint8_t b = random_byte(m, r);
        machine_byte(m, b);
        assert_true(mf_buf_char(out, (char)b));
    }
}
