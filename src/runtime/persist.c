/* Sessions to files and back: which file belongs to which engine. The format is kv/session_file.h. */
#include "runtime/engine.h"

#include "base/filemap.h"
#include "base/strmap.h"
#include "kv/session_file.h"

/* Of everything that says which model this is, except the weights themselves: reading them all would take
 * longer than a session saves. */
static uint64_t model_hash(const mf_gguf *g)
{
    uint64_t h = 0;
    for (size_t i = 0; i < mf_gguf_n_kv(g); i++) {
        const mf_gguf_kv *kv = mf_gguf_kv_at(g, i);
        const uint64_t kind[] = {kv->type, kv->elem, kv->count};
        h = mf_hash_bytes(kv->key.s, kv->key.n, h);
        h = mf_hash_bytes(kind, sizeof kind, h);
        h = mf_hash_bytes(kv->data, kv->size, h);
    }
    for (size_t i = 0; i < mf_gguf_n_tensors(g); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(g, i);
        const uint64_t kind[] = {t->type, t->dims[0], t->dims[1], t->dims[2], t->dims[3]};
        h = mf_hash_bytes(t->name.s, t->name.n, h);
        h = mf_hash_bytes(kind, sizeof kind, h);
    }
    return h;
}

static mf_session_cache cache_of(const minfer_engine *e)
{
    const mf_hparams *hp = &e->model->bound->hp;
    return (mf_session_cache){&e->graphs.alloc, model_hash(e->model->gguf), hp->n_vocab, hp->n_ctx};
}

static minfer_status check_alive(const minfer_engine *e, const char *path, minfer_error *err)
{
    if (!e->kv.lost) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_STATE, "%s: the cache was lost when moving it failed", path);
}

minfer_status minfer_session_save(const minfer_session *s, const char *path, const char *host_json, size_t n,
                                  minfer_error *err)
{
    mf_session_cache c = cache_of(s->e);
    mf_session_state state = {&s->seq, s->tokens, s->positions, host_json, n};
    mf_savefile f;
    MF_TRY(check_alive(s->e, path, err));
    MF_TRY(mf_savefile_open(path, &f, err));
    minfer_status st = mf_session_file_write(&f, &c, &state, err);
    return mf_savefile_close(&f, st, err);
}

/* Gives the new session s the tokens and rows of a file that fits. */
static minfer_status fill(minfer_session *s, const mf_session_view *v, const mf_session_cache *c,
                          const char *path, minfer_error *err)
{
    MF_TRY(mf_session_file_tokens(v, c, path, s->tokens, s->positions, err));
    minfer_status st = mf_kv_extend(&s->e->kv, &s->seq, (int32_t)v->n, err);
    if (st == MINFER_OK) st = mf_session_file_load(v, c, &s->seq, err);
    return st == MINFER_OK ? st : mf_fail_prefix(err, st, "%s", path);
}

static minfer_status restore(minfer_engine *e, const mf_filemap *map, const char *path, minfer_session **out,
                             char **host, size_t *n, minfer_error *err)
{
    mf_session_cache c = cache_of(e);
    mf_session_view v;
    minfer_session *s = NULL;
    MF_TRY(mf_session_file_parse(map->data, map->size, path, &v, err));
    MF_TRY(mf_session_file_match(&v, &c, path, err));
    char *copy = mf_strndup((const char *)v.host, v.n_host);
    minfer_status st = copy ? minfer_session_create(e, &s, err) : MF_NOMEM(err);
    if (st == MINFER_OK) st = fill(s, &v, &c, path, err);
    if (st != MINFER_OK) {
        minfer_session_free(s);
        mf_free(copy);
        return st;
    }
    *out = s;
    if (n) *n = v.n_host;
    if (host)
        *host = copy;
    else
        mf_free(copy);
    return MINFER_OK;
}

minfer_status minfer_session_restore(minfer_engine *e, const char *path, minfer_session **out,
                                     char **host_json, size_t *n, minfer_error *err)
{
    mf_filemap map;
    *out = NULL;
    if (host_json) *host_json = NULL;
    if (n) *n = 0;
    MF_TRY(check_alive(e, path, err));
    MF_TRY(mf_filemap_open(path, &map, err));
    minfer_status st = restore(e, &map, path, out, host_json, n, err);
    mf_filemap_close(&map);
    return st;
}
