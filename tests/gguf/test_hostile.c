/* gguf: every file of make_hostile.py opens, or is refused with the right words, in little time and memory.
 * Each is opened in a child process of its own. */
#include "support/sanitized.h"
#include "support/support.h"

#include "base/bytes.h"
#include "base/utf8.h"
#include "gguf/gguf.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEMORY = 32 << 20, CPU_MS = 200, HANG_S = 20, MAX_WORDS = 8 };

typedef struct outcome { /* written by the child into shared memory */
    minfer_status status;
    minfer_error err;
    long grown_kb; /* largest resident size, less what there was before */
    long cpu_ms;
    size_t n_tensors;
} outcome;

static long cpu_ms_of(const struct rusage *u)
{
    return (u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000 +
           (u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1000;
}

/* Address space may grow by MEMORY from here on, so that a reservation that is never touched counts too. */
static void limit_memory(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (SANITIZED || !f || fscanf(f, "%ld", &pages) != 1) return;
    fclose(f);
    rlim_t limit = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY;
    setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit});
}

/* What a user of the reader would touch. */
static size_t walk(const mf_gguf *g)
{
    size_t sum = 0;
    for (size_t i = 0; i < mf_gguf_n_kv(g); i++) {
        const mf_gguf_kv *kv = mf_gguf_kv_at(g, i);
        for (uint64_t k = 0; kv->strs && k < kv->count; k++)
            sum += kv->strs[k].n ? (uint8_t)kv->strs[k].s[0] : 0;
    }
    for (size_t i = 0; i < mf_gguf_n_tensors(g); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(g, i);
        sum += (size_t)t->data[0] + t->data[t->size - 1];
    }
    return sum;
}

static void child(const char *path, outcome *o)
{
    struct rusage before, after;
    mf_gguf *g = NULL;
    alarm(HANG_S);
    limit_memory();
    getrusage(RUSAGE_SELF, &before);
    o->status = mf_gguf_open(path, &g, &o->err);
    getrusage(RUSAGE_SELF, &after);
    o->grown_kb = after.ru_maxrss - before.ru_maxrss;
    o->cpu_ms = cpu_ms_of(&after) - cpu_ms_of(&before);
    if (g) {
        o->n_tensors = mf_gguf_n_tensors(g) + (walk(g) == SIZE_MAX);
        mf_gguf_free(g);
    }
}

static bool open_in_child(const char *path, outcome *o)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        child(path, o);
        exit(0); /* with the leak check of sanitizers */
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool well_spelled(const outcome *o, const char *file)
{
    const char *m = o->err.message, *base = strrchr(file, '/');
    if (!strstr(m, base ? base + 1 : file) && !strstr(m, "-of-0000")) return false;
    return strchr(m, '\n') == NULL && mf_utf8_valid(m, strlen(m)) && strlen(m) < sizeof o->err.message - 1;
}

/* One line of the manifest: file, status, words. Returns how many things are wrong with the outcome. */
static int check_line(char *line, outcome *o)
{
    char *words[MAX_WORDS] = {0}, *save = NULL, path[1024];
    char *file = strtok_r(line, "\t", &save), *status = strtok_r(NULL, "\t", &save);
    for (int i = 0; i < MAX_WORDS && (words[i] = strtok_r(NULL, "\t", &save)); i++)
        ;
    *o = (outcome){0};
    snprintf(path, sizeof path, "%s/%s", MF_HOSTILE, file);
    int bad = !open_in_child(path, o);
    if (bad) print_error("%s: the process died\n", file);
    if (strcmp(mf_status_name(o->status), status) != 0) bad++;
    for (int i = 0; i < MAX_WORDS && words[i]; i++)
        if (!strstr(o->err.message, words[i])) bad++, print_error("%s: no \"%s\"\n", file, words[i]);
    if (o->status != MINFER_OK && !well_spelled(o, file)) bad++;
    if (o->grown_kb > MEMORY / 1024 || (!SANITIZED && o->cpu_ms > CPU_MS)) bad++;
    if (bad)
        print_error("%s: expected %s, got %s: %s (%ld kB, %ld ms)\n", file, status, mf_status_name(o->status),
                    o->err.message, o->grown_kb, o->cpu_ms);
    return bad;
}

static void test_manifest(void **state)
{
    (void)state;
    if (!file_exists(MF_HOSTILE "/manifest.tsv")) SKIP_BECAUSE("%s was not written (python3?)", MF_HOSTILE);
    char *text = read_all(MF_HOSTILE "/manifest.tsv", NULL), *save = NULL;
    outcome *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0, refused = 0, opened = 0;
    long kb = 0, ms = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        bad += check_line(line, o);
        opened += o->status == MINFER_OK;
        refused += o->status != MINFER_OK;
        if (o->grown_kb > kb) kb = o->grown_kb;
        if (o->cpu_ms > ms) ms = o->cpu_ms;
    }
    print_message("%d files refused, %d opened; at most %ld kB and %ld ms each\n", refused, opened, kb, ms);
    munmap(o, sizeof *o);
    mf_free(text);
    assert_int_equal(bad, 0);
    assert_true(refused >= 150 && opened >= 20);
}

/* Every prefix of a file with all kinds of entries is refused, except those that only lack trailing padding.
 */
static void test_every_prefix(void **state)
{
    (void)state;
    if (!file_exists(MF_HOSTILE "/good_qwen3.gguf"))
        SKIP_BECAUSE("%s was not written (python3?)", MF_HOSTILE);
    size_t size, header;
    char *data = read_all(MF_HOSTILE "/good_qwen3.gguf", &size);
    mf_gguf *g;
    minfer_error err;
    assert_ok(mf_gguf_parse(data, size, "whole", &g, &err), &err);
    header = (size_t)mf_gguf_tensor_at(g, 0)->offset;
    mf_gguf_free(g);
    for (size_t n = 0; n < size; n += n < header ? 1 : 4099) {
        uint8_t *copy = mf_malloc(n);
        if (n) memcpy(copy, data, n);
        g = NULL;
        if (mf_gguf_parse(copy, n, "prefix", &g, &err) == MINFER_OK)
            fail_msg("%zu of %zu bytes are accepted", n, size);
        assert_null(g);
        mf_free(copy);
    }
    mf_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifest),
        cmocka_unit_test(test_every_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
