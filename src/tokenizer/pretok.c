/* The expressions, and running them with PCRE2.
 *
 * Facts: the pre_tokenizer entries of the models' tokenizer.json files at Hugging Face, whose engine is
 * Oniguruma with the data of Unicode 16. The PCRE2 at hand may know an older Unicode (10.42: 14), so the
 * classes below add what Unicode 15 to 16 assigned; and \s is spelled out, because PCRE2 counts U+180E among
 * spaces. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pretok.h"
#include "base/mem.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>

/* Contents of character classes. */
#define SPACE \
    "\\x{9}-\\x{d} \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define LETTER                                                                                       \
    "\\p{L}\\x{1c89}\\x{1c8a}\\x{a7cb}-\\x{a7cd}\\x{a7da}-\\x{a7dc}\\x{105c0}-\\x{105f3}"            \
    "\\x{10d4a}-\\x{10d65}\\x{10d6f}-\\x{10d85}\\x{10ec2}-\\x{10ec4}\\x{1123f}\\x{11240}"            \
    "\\x{11380}-\\x{11389}\\x{1138b}\\x{1138e}\\x{11390}-\\x{113b5}\\x{113b7}\\x{113d1}\\x{113d3}"   \
    "\\x{11bc0}-\\x{11be0}\\x{11f02}\\x{11f04}-\\x{11f10}\\x{11f12}-\\x{11f33}\\x{1342f}"            \
    "\\x{13441}-\\x{13446}\\x{13460}-\\x{143fa}\\x{16100}-\\x{1611d}\\x{16d40}-\\x{16d6c}\\x{18cff}" \
    "\\x{1b132}\\x{1b155}\\x{1df25}-\\x{1df2a}\\x{1e030}-\\x{1e06d}\\x{1e4d0}-\\x{1e4eb}"            \
    "\\x{1e5d0}-\\x{1e5ed}\\x{1e5f0}\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}"
#define NUMBER                                                                                   \
    "\\p{N}\\x{10d40}-\\x{10d49}\\x{116d0}-\\x{116e3}\\x{11bf0}-\\x{11bf9}\\x{11f50}-\\x{11f59}" \
    "\\x{16130}-\\x{16139}\\x{16d70}-\\x{16d79}\\x{1ccf0}-\\x{1ccf9}\\x{1d2c0}-\\x{1d2d3}"       \
    "\\x{1e4f0}-\\x{1e4f9}\\x{1e5f1}-\\x{1e5fa}"
#define MARK                                                                                        \
    "\\p{M}\\x{897}\\x{cf3}\\x{ece}\\x{10d69}-\\x{10d6d}\\x{10efc}-\\x{10eff}\\x{11241}"            \
    "\\x{113b8}-\\x{113c0}\\x{113c2}\\x{113c5}\\x{113c7}-\\x{113ca}\\x{113cc}-\\x{113d0}\\x{113d2}" \
    "\\x{113e1}\\x{113e2}\\x{11f00}\\x{11f01}\\x{11f03}\\x{11f34}-\\x{11f3a}\\x{11f3e}-\\x{11f42}"  \
    "\\x{11f5a}\\x{13440}\\x{13447}-\\x{13455}\\x{1611e}-\\x{1612f}\\x{1e08f}\\x{1e4ec}-\\x{1e4ef}" \
    "\\x{1e5ee}\\x{1e5ef}"

#define CONTRACTION "'s|'t|'re|'ve|'m|'ll|'d"
/* White space, of which the last character before a word belongs to the word. */
#define SPACES "[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"

#define GPT2 CONTRACTION "| ?[" LETTER "]+| ?[" NUMBER "]+| ?[^" SPACE LETTER NUMBER "]+|" SPACES

/* Every numeric character stands alone and ends what comes before it; GPT-2's expression cuts what is between
 * them. */
#define SMOLLM                                                                    \
    "[" NUMBER "]|" CONTRACTION "| ?[" LETTER "]+| ?[^" SPACE LETTER NUMBER "]+|" \
    "[" SPACE "]+(?![^" SPACE NUMBER "])|[" SPACE "]+"

/* Llama 3's and what came of it: words are the characters of `word`, numbers are cut into `digits`. */
#define WORDS(word, digits)                                                           \
    "(?i:" CONTRACTION ")|[^\\r\\n" LETTER NUMBER "]?[" word "]+|[" NUMBER "]" digits \
    "| ?[^" SPACE NUMBER word "]+[\\r\\n]*|[" SPACE "]*[\\r\\n]+|" SPACES

#define QWEN2  WORDS(LETTER, "")
#define QWEN35 WORDS(LETTER MARK, "")
#define LLAMA3 WORDS(LETTER, "{1,3}")

/* "default", which is what a file without the key has too, is byte-level BPE with nothing said: the
 * expression Hugging Face's byte-level pre-tokenizer has built in. */
static const mf_pretok_kind kinds[] = {
    {.name = "qwen2", .pattern = QWEN2, .nfc = true},
    {.name = "deepseek-r1-qwen", .pattern = QWEN2, .nfc = true, .adds_bos = true},
    {.name = "qwen35", .pattern = QWEN35, .nfc = true},
    {.name = "smollm", .pattern = SMOLLM},
    {.name = "llama-bpe", .pattern = LLAMA3, .whole_tokens = true, .adds_bos = true},
    {.name = "llama3", .pattern = LLAMA3, .whole_tokens = true, .adds_bos = true},
    {.name = "llama-v3", .pattern = LLAMA3, .whole_tokens = true, .adds_bos = true},
    {.name = "gpt-2", .pattern = GPT2},
    {.name = "default", .pattern = GPT2},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

minfer_status mf_pretok_find(mf_str name, const mf_pretok_kind **out, minfer_error *err)
{
    char list[N_KINDS * 20] = "";
    size_t len = 0;
    for (size_t i = 0; i < N_KINDS; i++) {
        size_t n = strlen(kinds[i].name);
        if (n == name.n && memcmp(kinds[i].name, name.s, n) == 0) {
            *out = &kinds[i];
            return MINFER_OK;
        }
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", kinds[i].name);
    }
    return mf_fail(err, MINFER_ERR_UNSUPPORTED, "tokenizer.ggml.pre is '%.*s'; known are %s",
                   name.n > 80 ? 80 : (int)name.n, name.s, list);
}

static void *give(PCRE2_SIZE n, void *unused)
{
    (void)unused;
    return mf_malloc(n);
}

static void take(void *p, void *unused)
{
    (void)unused;
    mf_free(p);
}

static minfer_status engine_error(int code, const char *doing, minfer_error *err)
{
    PCRE2_UCHAR text[160] = "";
    if (code == PCRE2_ERROR_NOMEMORY) return MF_NOMEM(err);
    pcre2_get_error_message(code, text, sizeof text);
    return mf_fail(err, MINFER_ERR_STATE, "pre-tokenizer, %s: %s", doing, (const char *)text);
}

minfer_status mf_pretok_compile(mf_pretok *p, const mf_pretok_kind *kind, minfer_error *err)
{
    enum { HEAP_FAILED = 121 };
    int code;
    PCRE2_SIZE at;
    p->memory = pcre2_general_context_create(give, take, NULL);
    pcre2_compile_context *cc = p->memory ? pcre2_compile_context_create(p->memory) : NULL;
    if (cc) p->limits = pcre2_match_context_create(p->memory);
    if (!p->limits) {
        pcre2_compile_context_free(cc);
        return MF_NOMEM(err);
    }
    p->code = pcre2_compile((PCRE2_SPTR)kind->pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code,
                            &at, cc);
    pcre2_compile_context_free(cc);
    if (!p->code) return code == HEAP_FAILED ? MF_NOMEM(err) : engine_error(code, kind->name, err);
    /* Where code may not be generated, matching goes on without it. */
    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
    pcre2_set_match_limit(p->limits, UINT32_MAX);
    pcre2_set_depth_limit(p->limits, UINT32_MAX);
    p->options = PCRE2_NO_UTF_CHECK;
    return MINFER_OK;
}

void mf_pretok_free(mf_pretok *p)
{
    pcre2_code_free(p->code);
    pcre2_match_context_free(p->limits);
    pcre2_general_context_free(p->memory);
    *p = (mf_pretok){0};
}

/* Finds the next match from `at`; *start and *end are text.n when there is none. */
static minfer_status next_match(const mf_pretok *p, mf_str text, size_t at, pcre2_match_data *md,
                                size_t *start, size_t *end, minfer_error *err)
{
    PCRE2_SPTR s = (PCRE2_SPTR)text.s;
    int n = pcre2_match(p->code, s, text.n, at, p->options, md, p->limits);
    /* Generated code has a small stack of its own; without it the engine takes what memory it needs. */
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(p->code, s, text.n, at, p->options | PCRE2_NO_JIT, md, p->limits);
    *start = *end = text.n;
    if (n == PCRE2_ERROR_NOMATCH) return MINFER_OK;
    if (n < 0) return engine_error(n, "matching", err);
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(md);
    *start = span[0];
    *end = span[1];
    return MINFER_OK;
}

minfer_status mf_pretok_split(const mf_pretok *p, mf_str text, mf_pretok_fn *fn, void *arg, minfer_error *err)
{
    minfer_status st = MINFER_OK;
    pcre2_match_data *md = pcre2_match_data_create(1, p->memory);
    if (!md) return MF_NOMEM(err);
    for (size_t at = 0, start, end; at < text.n; at = end) {
        MF_TRY_GOTO(next_match(p, text, at, md, &start, &end, err));
        if (start > at) MF_TRY_GOTO(fn(arg, (mf_str){text.s + at, start - at}, err));
        if (end <= at)
            MF_TRY_GOTO(mf_fail(err, MINFER_ERR_STATE, "pre-tokenizer: an empty piece at byte %zu", at));
        if (end > start) MF_TRY_GOTO(fn(arg, (mf_str){text.s + start, end - start}, err));
    }
done:
    pcre2_match_data_free(md);
    return st;
}
