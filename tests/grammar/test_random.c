/* Random grammars on all short texts, against a plain matcher that knows nothing of sets and stacks: it
 * computes where each expression may end, straight from the definition, and finds what recursion gives as a
 * least fixpoint. */
#include "common.h"

enum { N_RULES = 3, MAX_LENGTH = 6, N_LETTERS = 3, MAX_NODES = 200, MANY = 1000 };

typedef enum kind { LETTERS, CALL, REPEAT, SEQUENCE, CHOICE } kind;

typedef struct node {
    kind kind;
    unsigned letters; /* bits */
    int rule, a, b;   /* nodes; -1: none */
    int min, max;
} node;

typedef struct random_grammar {
    node nodes[MAX_NODES];
    int n, rules[N_RULES];
    mf_buf text;
} random_grammar;

static const char letters[] = "abc";

/* ---- making */

static int make(random_grammar *g, mf_rng *r, int depth)
{
    int at = g->n++;
    assert_true(at < MAX_NODES);
    node n = {.kind = depth > 0 ? (kind)below(r, 5) : (kind)below(r, 2), .a = -1, .b = -1};
    n.letters = (unsigned)(1 + below(r, (1u << N_LETTERS) - 1));
    n.rule = (int)below(r, N_RULES);
    n.min = (int)below(r, 3);
    n.max = below(r, 2) ? MANY : n.min + (int)below(r, 3);
    if (n.kind == REPEAT || n.kind >= SEQUENCE) n.a = make(g, r, depth - 1);
    if (n.kind == CHOICE && below(r, 4) == 0)
        n.b = -1; /* or nothing */
    else if (n.kind >= SEQUENCE)
        n.b = make(g, r, depth - 1);
    g->nodes[at] = n;
    return at;
}

static void write_node(random_grammar *g, int at)
{
    mf_buf *b = &g->text;
    const node *n = &g->nodes[at];
    if (n->kind == LETTERS) {
        mf_buf_char(b, '[');
        for (int i = 0; i < N_LETTERS; i++)
            if (n->letters >> i & 1) mf_buf_char(b, letters[i]);
        mf_buf_char(b, ']');
    } else if (n->kind == CALL) {
        mf_buf_printf(b, "%s", n->rule ? n->rule == 1 ? "one" : "two" : "root");
    } else if (n->kind == REPEAT) {
        mf_buf_char(b, '(');
        write_node(g, n->a);
        mf_buf_printf(b, n->max == MANY ? "){%d,}" : "){%d,%d}", n->min, n->max);
    } else {
        mf_buf_char(b, '(');
        write_node(g, n->a);
        mf_buf_str(b, n->kind == CHOICE ? " | " : " ");
        if (n->b >= 0) write_node(g, n->b);
        mf_buf_char(b, ')');
    }
}

static void make_grammar(random_grammar *g, mf_rng *r)
{
    static const char *const names[] = {"root", "one", "two"};
    g->n = 0;
    g->text.len = 0;
    for (int i = 0; i < N_RULES; i++) {
        g->rules[i] = make(g, r, 3);
        mf_buf_printf(&g->text, "%s ::= ", names[i]);
        write_node(g, g->rules[i]);
        mf_buf_char(&g->text, '\n');
    }
}

/* ---- matching: bit e of ends[rule][i] is set when the rule has the text from i to e */

typedef struct plain_match {
    const random_grammar *g;
    const char *text;
    int n;
    unsigned ends[N_RULES][MAX_LENGTH + 1];
} plain_match;

static unsigned ends_of(const plain_match *m, int at, int from);

static unsigned ends_from_all(const plain_match *m, int at, unsigned starts)
{
    unsigned ends = 0;
    for (int i = 0; i <= m->n; i++)
        if (starts >> i & 1) ends |= ends_of(m, at, i);
    return ends;
}

static unsigned ends_of_repeat(const plain_match *m, const node *n, int from)
{
    unsigned now = 1u << from, ends = n->min == 0 ? now : 0;
    int most = n->max == MANY ? n->min + MAX_LENGTH + 1 : n->max; /* more rounds than that are empty ones */
    for (int i = 1; i <= most; i++) {
        now = ends_from_all(m, n->a, now);
        if (i >= n->min) ends |= now;
    }
    return ends;
}

static unsigned ends_of(const plain_match *m, int at, int from)
{
    const node *n = &m->g->nodes[at];
    switch (n->kind) {
    case LETTERS: return from < m->n && n->letters >> (m->text[from] - 'a') & 1 ? 1u << (from + 1) : 0;
    case CALL: return m->ends[n->rule][from];
    case REPEAT: return ends_of_repeat(m, n, from);
    case SEQUENCE: return ends_from_all(m, n->b, ends_of(m, n->a, from));
    case CHOICE: break;
    }
    return ends_of(m, n->a, from) | (n->b < 0 ? 1u << from : ends_of(m, n->b, from));
}

static bool plain_accepts(const random_grammar *g, const char *text, int n)
{
    plain_match m = {.g = g, .text = text, .n = n};
    bool changed = true;
    while (changed) {
        changed = false;
        for (int r = 0; r < N_RULES; r++)
            for (int i = 0; i <= n; i++) {
                unsigned ends = ends_of(&m, g->rules[r], i);
                changed |= ends != m.ends[r][i];
                m.ends[r][i] = ends;
            }
    }
    return m.ends[0][0] >> n & 1;
}

/* ---- comparing */

/* All texts up to the greatest length; dead: a beginning of this one cannot go on. */
static void compare(machine *m, const random_grammar *g, char *text, int n, uint32_t set, long *accepted)
{
    bool want = plain_accepts(g, text, n), got = mf_gsets_can_end(&m->sets, set);
    if (want != got)
        fail_msg("%.*s'%.*s': %d, expected %d", (int)g->text.len, g->text.data, n, text, got, want);
    *accepted += want;
    for (int i = 0; i < N_LETTERS && n < MAX_LENGTH; i++) {
        text[n] = letters[i];
        m->set = set;
        machine_byte(m, (uint8_t)letters[i]);
        compare(m, g, text, n + 1, m->set, accepted);
    }
}

static void test_random_grammars(void **state)
{
    (void)state;
    enum { TURNS = 300 };
    static random_grammar g;
    mf_rng r;
    long accepted = 0;
    int left = 0, endless = 0, good = 0;
    mf_rng_seed(&r, 7);
    while (good < TURNS) {
        mf_program p;
        minfer_error err = {0};
        machine m;
        char text[MAX_LENGTH + 1];
        make_grammar(&g, &r);
        minfer_status st = mf_program_read(&p, g.text.data, g.text.len, NULL, &err);
        left += st != MINFER_OK && strstr(err.message, "begins with itself") != NULL;
        endless += st != MINFER_OK && strstr(err.message, "never end") != NULL;
        if (st != MINFER_OK) continue;
        mf_program_free(&p);
        machine_open(&m, g.text.data, 4);
        compare(&m, &g, text, 0, m.set, &accepted);
        machine_close(&m);
        good++;
    }
    print_message("  %d grammars, %ld texts accepted; refused: %d left recursive, %d endless\n", good,
                  accepted, left, endless);
    assert_true(left > 0 && endless > 0 && accepted > 1000);
    mf_buf_free(&g.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_grammars)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
