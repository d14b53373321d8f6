/* DOT export. */
#include "graph/export.h"

#include <string.h>

static const char *fill(const mf_export *e, const mf_node *n)
{
    if (!e->devices || n->device < 0) return "white";
    const char *name = e->devices[n->device]->name;
    if (strcmp(name, "metal") == 0) return "lightblue";
    if (strcmp(name, "cuda") == 0) return "lightgreen";
    return "lightyellow";
}

/* The text of a DOT string, without its quotes. */
static bool escaped(mf_buf *out, const char *s)
{
    bool ok = true;
    for (; *s && ok; s++) {
        if (*s == '"' || *s == '\\') ok = mf_buf_char(out, '\\');
        ok = ok && mf_buf_char(out, *s);
    }
    return ok;
}

static bool node(const mf_export *e, const mf_node *n, mf_buf *out)
{
    const char *shape = n->op == MF_OP_INPUT || n->output ? "doublecircle" : "box";
    bool ok = mf_buf_printf(out, "  n%d [label=\"", n->id) && escaped(out, n->name) &&
              mf_buf_printf(out, "\\n%s\", shape=%s, fillcolor=%s];\n", mf_op_table[n->op].name, shape,
                            fill(e, n));
    for (int32_t k = 0; k < n->n_src && ok; k++) ok = mf_buf_printf(out, "  n%d -> n%d;\n", n->src[k], n->id);
    return ok;
}

bool mf_export_dot(const mf_export *e, mf_buf *out)
{
    bool ok = mf_buf_str(out, "digraph minfer {\n  rankdir=TB;\n  label=\"") && escaped(out, e->model) &&
              mf_buf_str(out, "\";\n  node [style=filled];\n");
    for (mf_id i = 0; i < e->graph->n_nodes && ok; i++)
        if (!e->graph->nodes[i].dead) ok = node(e, &e->graph->nodes[i], out);
    return ok && mf_buf_str(out, "}\n");
}
