/* Values of the template language: Python's, as far as JSON and Jinja need them. Owns the types, strings,
 * lists and dictionaries; knows nothing of nodes or filters.
 *
 * Everything a value points to lives in the arena of a rendering (or of the template, for constants), so
 * values are copied freely and never freed. Strings are immutable and share bytes; lists and dictionaries are
 * shared by reference, as in Python. Objects of the template's arena are only read.
 *
 * Internal names of this folder begin with mf_t. */
#ifndef MF_TEMPLATE_VALUE_H
#define MF_TEMPLATE_VALUE_H

#include "template/render.h"

typedef enum mf_ttype {
    MF_T_MISSING, /* no value: an unset variable, an argument that was not given, the end of an iteration */
    MF_T_UNDEFINED,
    MF_T_NONE,
    MF_T_BOOL,
    MF_T_INT,
    MF_T_FLOAT,
    MF_T_STR,
    MF_T_LIST,
    MF_T_TUPLE,
    MF_T_DICT,
    MF_T_RANGE,
    MF_T_VIEW, /* keys(), values(), items() of a dictionary */
    MF_T_ITER, /* an iterator that can be read once */
    MF_T_NAMESPACE,
    MF_T_MACRO,
    MF_T_FUNC, /* a function, or a method bound to its object */
    MF_T_LOOP,
    MF_T_CYCLER,
    MF_T_JOINER,
    MF_T_COUNT,
} mf_ttype;

/* UTF-8, always valid; may hold NUL bytes; not terminated. */
typedef struct mf_tstr {
    const char *p;
    size_t n;     /* bytes */
    size_t chars; /* code points */
} mf_tstr;

typedef struct mf_tval {
    uint8_t type; /* mf_ttype */
    bool safe;    /* a string that |safe or |escape made; any other operation forgets it */
    union {
        bool b;
        int64_t i;
        double f;
        const mf_tstr *s;
        struct mf_tlist *list; /* LIST, TUPLE */
        struct mf_tdict *dict; /* DICT, NAMESPACE */
        const struct mf_trange *range;
        const struct mf_tview *view;
        struct mf_titer *iter;
        const struct mf_tundef *undef;
        const struct mf_tmacro *macro;
        const struct mf_tfunc *func;
        struct mf_tloop *loop;
        struct mf_tcycler *cycler;
        struct mf_tjoiner *joiner;
        const void *ptr; /* whichever of the above, for identity */
    };
} mf_tval;

typedef struct mf_tlist {
    mf_tval *v;
    size_t n, cap;
    bool busy;  /* being printed: a list inside itself is shown as [...] */
    bool group; /* a tuple of |groupby: has the attributes grouper and list */
} mf_tlist;

typedef struct mf_tentry {
    mf_tval key, value; /* key.type is MISSING for a removed entry */
    uint64_t hash;
} mf_tentry;

typedef struct mf_tdict { /* in the order of insertion */
    mf_tentry *e;
    size_t n, cap;   /* entries, removed ones included */
    size_t live;     /* entries that are there */
    uint32_t *index; /* open addressing over e, 0 = free, otherwise number + 1; NULL while small */
    size_t index_cap;
    bool busy;
} mf_tdict;

typedef struct mf_trange {
    int64_t start, stop, step;
    int64_t n; /* items */
} mf_trange;

typedef enum mf_tview_kind { MF_VIEW_KEYS, MF_VIEW_VALUES, MF_VIEW_ITEMS } mf_tview_kind;

typedef struct mf_tview {
    mf_tdict *dict;
    mf_tview_kind kind;
} mf_tview;

typedef struct mf_tundef { /* why a value is undefined; the message is made when somebody uses it */
    const char *hint;      /* the whole message, or NULL */
    mf_tval obj;           /* what was asked, MISSING for a variable */
    mf_tval name;          /* what it was asked for */
    mf_texc exc;
} mf_tundef;

static inline mf_tval mf_tmissing(void)
{
    return (mf_tval){.type = MF_T_MISSING};
}
static inline mf_tval mf_tnone(void)
{
    return (mf_tval){.type = MF_T_NONE};
}
static inline mf_tval mf_tbool(bool b)
{
    return (mf_tval){.type = MF_T_BOOL, .b = b};
}
static inline mf_tval mf_tint(int64_t i)
{
    return (mf_tval){.type = MF_T_INT, .i = i};
}
static inline mf_tval mf_tfloat(double f)
{
    return (mf_tval){.type = MF_T_FLOAT, .f = f};
}
static inline mf_tval mf_tstring(const mf_tstr *s)
{
    return (mf_tval){.type = MF_T_STR, .s = s};
}
static inline mf_tval mf_tlistval(mf_tlist *l)
{
    return (mf_tval){.type = MF_T_LIST, .list = l};
}
static inline mf_tval mf_ttupleval(mf_tlist *l)
{
    return (mf_tval){.type = MF_T_TUPLE, .list = l};
}
static inline mf_tval mf_tdictval(mf_tdict *d)
{
    return (mf_tval){.type = MF_T_DICT, .dict = d};
}

static inline bool mf_tis(mf_tval v, mf_ttype t)
{
    return v.type == t;
}
static inline bool mf_tis_seq(mf_tval v) /* list or tuple */
{
    return v.type == MF_T_LIST || v.type == MF_T_TUPLE;
}
static inline bool mf_tis_int(mf_tval v) /* what Python takes for an integer: bool counts */
{
    return v.type == MF_T_INT || v.type == MF_T_BOOL;
}
static inline bool mf_tis_number(mf_tval v)
{
    return mf_tis_int(v) || v.type == MF_T_FLOAT;
}
static inline int64_t mf_tas_int(mf_tval v) /* of an int or bool */
{
    return v.type == MF_T_BOOL ? v.b : v.i;
}
static inline double mf_tas_double(mf_tval v) /* of a number */
{
    return v.type == MF_T_FLOAT ? v.f : (double)mf_tas_int(v);
}

/* Python's name of the type: "int", "NoneType", ... */
const char *mf_tval_type_name(mf_tval v);

/* Strings. _new copies; _view shares n bytes at offset off of base, which lie on character borders; _lit
 * takes static ASCII text. */
minfer_status mf_tstr_new(mf_trender *r, const char *p, size_t n, mf_tval *out);
minfer_status mf_tstr_wrap(mf_trender *r, const char *p, size_t n, mf_tval *out); /* keeps p */
minfer_status mf_tstr_view(mf_trender *r, const mf_tstr *base, size_t off, size_t n, mf_tval *out);
minfer_status mf_tstr_lit(mf_trender *r, const char *text, mf_tval *out);
size_t mf_tstr_count(const char *p, size_t n); /* code points of valid UTF-8 */
/* Byte offset of character i (0..chars). */
size_t mf_tstr_offset(const mf_tstr *s, size_t i);
bool mf_tstr_is(const mf_tstr *s, const char *text);
bool mf_tstr_same(const mf_tstr *a, const mf_tstr *b);
/* Length of the character that starts at p. */
size_t mf_tchar_len(const char *p);

/* Lists and tuples. */
minfer_status mf_tlist_new(mf_trender *r, size_t cap, mf_tlist **out);
minfer_status mf_tlist_push(mf_trender *r, mf_tlist *l, mf_tval v);
minfer_status mf_tlist_copy(mf_trender *r, const mf_tlist *l, size_t from, size_t n, mf_tlist **out);
minfer_status mf_tpair(mf_trender *r, mf_tval a, mf_tval b, mf_tval *out); /* a tuple of two */

/* Dictionaries. Keys are any hashable values; lookups of others are a TypeError. */
minfer_status mf_tdict_new(mf_trender *r, mf_tdict **out);
minfer_status mf_tdict_find(mf_trender *r, const mf_tdict *d, mf_tval key,
                            mf_tentry **out); /* NULL: absent */
minfer_status mf_tdict_set(mf_trender *r, mf_tdict *d, mf_tval key, mf_tval value);
minfer_status mf_tdict_copy(mf_trender *r, const mf_tdict *d, mf_tdict **out);
minfer_status mf_tdict_update(mf_trender *r, mf_tdict *d, const mf_tdict *from);
void mf_tdict_remove(mf_tdict *d, mf_tentry *e);
void mf_tdict_clear(mf_tdict *d);
/* The next entry at or after *i (start with 0), or NULL. */
mf_tentry *mf_tdict_next(const mf_tdict *d, size_t *i);
/* The value of a key given as text, or MISSING. */
minfer_status mf_tdict_get(mf_trender *r, const mf_tdict *d, const char *key, mf_tval *out);

/* An undefined value: of a variable or attribute (name) of obj (MISSING: a variable), or with its own
 * message. */
minfer_status mf_tundefined(mf_trender *r, mf_tval obj, mf_tval name, mf_tval *out);
minfer_status mf_tundefined_hint(mf_trender *r, const char *hint, mf_tval *out);
/* An attribute the sandbox does not show. */
minfer_status mf_tundefined_unsafe(mf_trender *r, mf_tval obj, mf_tval name, mf_tval *out);
/* The error that using it raises. */
minfer_status mf_tundefined_raise(mf_trender *r, mf_tval v);

#endif
