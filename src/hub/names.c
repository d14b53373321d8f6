/* Names of models: endings, part numbers, quantizations, and how well what a user typed fits. Pure functions
 * of strings. */
#include "hub/hub.h"

#include <string.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool same(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lower(a[i]) != lower(b[i])) return false;
    return true;
}

static bool equal(const char *a, size_t a_n, const char *b, size_t b_n)
{
    return a_n == b_n && same(a, b, a_n);
}

size_t mf_hub_stem(const char *s, size_t n)
{
    return n >= 5 && same(s + n - 5, ".gguf", 5) ? n - 5 : n;
}

/* Five digits. */
static bool read_number(const char *s, uint32_t *v)
{
    *v = 0;
    for (size_t i = 0; i < 5; i++) {
        if (!is_digit(s[i])) return false;
        *v = *v * 10 + (uint32_t)(s[i] - '0');
    }
    return true;
}

size_t mf_hub_split(const char *s, size_t n, uint32_t *part, uint32_t *n_parts)
{
    enum { TAIL = sizeof "-00001-of-00003" - 1 };
    const char *t = n > TAIL ? s + n - TAIL : "";
    if (t[0] == '-' && read_number(t + 1, part) && same(t + 6, "-of-", 4) && read_number(t + 10, n_parts) &&
        *part >= 1 && *part <= *n_parts)
        return n - TAIL;
    *part = *n_parts = 0;
    return n;
}

/* ---- quantizations */

static bool is_word(const char *s, size_t n)
{
    static const char *const words[] = {"f16", "f32", "bf16", "fp16", "fp32", "mxfp4"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (equal(s, n, words[i], strlen(words[i]))) return true;
    return false;
}

/* q4_0, iq2_xxs, tq1_0, q4_k_m: a digit after the q, and further words joined by _ */
static bool is_quant_type(const char *s, size_t n)
{
    size_t i = n > 0 && (lower(s[0]) == 'i' || lower(s[0]) == 't') ? 1 : 0;
    if (n < i + 2 || lower(s[i]) != 'q' || !is_digit(s[i + 1])) return false;
    for (i += 2; i < n; i++)
        if (s[i] != '_' && !is_digit(s[i]) && !(lower(s[i]) >= 'a' && lower(s[i]) <= 'z')) return false;
    return true;
}

static bool is_quant(const char *s, size_t n)
{
    if (n > 3 && (same(s, "ud-", 3) || same(s, "i1-", 3))) {
        s += 3;
        n -= 3;
    }
    return is_word(s, n) || is_quant_type(s, n);
}

size_t mf_hub_unquantized(const char *s, size_t n)
{
    for (size_t i = 1; i + 1 < n; i++)
        if (strchr("-._", s[i]) && is_quant(s + i + 1, n - i - 1)) return i;
    return n;
}

/* ---- fitting */

/* May a name be left off at s[i]? A point between digits is inside a version. */
static bool is_border(const char *s, size_t n, size_t i)
{
    if (i == 0 || !strchr("-._:/", s[i])) return false;
    return !(s[i] == '.' && is_digit(s[i - 1]) && i + 1 < n && is_digit(s[i + 1]));
}

static mf_hub_fit fit_file(const char *file, const char *typed, size_t n)
{
    size_t file_n = strlen(file);
    if (equal(file, file_n, typed, n)) return MF_HUB_FILE;
    if (equal(file, mf_hub_unquantized(file, file_n), typed, n)) return MF_HUB_UNQUANTIZED;
    if (n < file_n && same(file, typed, n) && is_border(file, file_n, n)) return MF_HUB_PREFIX;
    return MF_HUB_NO_FIT;
}

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static mf_hub_fit better(mf_hub_fit a, mf_hub_fit b)
{
    return a > b ? a : b;
}

/* Length of "hf:" or "ollama:" in front of typed; 0 when there is neither. */
static size_t source_length(const char *typed, size_t n)
{
    if (n >= 3 && same(typed, "hf:", 3)) return 3;
    return n >= 7 && same(typed, "ollama:", 7) ? 7 : 0;
}

bool mf_hub_has_source(const char *typed)
{
    return source_length(typed, strlen(typed)) > 0;
}

/* Length of "hf:owner/repo" in front of ":file"; 0 when typed names no source. */
static size_t repo_length(const char *typed, size_t n)
{
    size_t source = source_length(typed, n);
    if (source == 0) return 0;
    const char *colon = memchr(typed + source, ':', n - source);
    return colon ? (size_t)(colon - typed) : n;
}

mf_hub_fit mf_hub_fits(const mf_hub_model *m, const char *typed)
{
    uint32_t part, n_parts;
    size_t n = mf_hub_split(typed, mf_hub_stem(typed, strlen(typed)), &part, &n_parts);
    size_t repo_n = repo_length(typed, n);
    if (n == 0) return MF_HUB_NO_FIT;
    if (equal(m->name, strlen(m->name), typed, n)) return MF_HUB_NAME;
    if (repo_n > 0 && !equal(m->repo, strlen(m->repo), typed, repo_n)) return MF_HUB_NO_FIT;
    if (repo_n == n) return MF_HUB_FILE;
    const char *file = base_name(m->file);
    size_t skip = repo_n ? repo_n + 1 : 0, tail = mf_hub_unquantized(file, strlen(file));
    typed += skip;
    n -= skip;
    mf_hub_fit fit = better(fit_file(m->file, typed, n), fit_file(file, typed, n));
    if (repo_n > 0 && file[tail] && equal(file + tail + 1, strlen(file + tail + 1), typed, n))
        fit = better(fit, MF_HUB_UNQUANTIZED);
    return fit;
}
