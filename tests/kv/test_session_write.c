/* Saving under adversity: a kill at any moment, two savers, a full disk, places where no file can be. What
 * stands under the path is always one whole session. */
#include "kv/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CTX = 1024, FED = 200, KILLS = 120, TURNS = 40 };

typedef struct {
    minfer_model *m;
    minfer_engine *e;
    minfer_session *s[2];
    char *bytes[2]; /* their files */
    size_t size[2];
} world;

static world w;

static const char *path(void)
{
    return rig_path("s.kv");
}

static const char *host_of(int i)
{
    return i ? "{\"who\": \"the second\"}" : "{}";
}

static int open_world(void **state)
{
    rig_options o = {.cache = MINFER_CACHE_F32, .n_ctx = CTX, .n_batch = 128, .threads = 1};
    int32_t tokens[FED];
    mf_rng r;
    mf_rng_seed(&r, 3);
    if (rig_folder_make(state) != 0) return -1;
    w.m = rig_model(rig_models[0]);
    w.e = rig_engine(w.m, &o);
    for (int i = 0; i < 2; i++) {
        w.s[i] = rig_session(w.e);
        rig_random_tokens(&r, rig_n_vocab(w.e), tokens, FED);
        rig_feed(w.s[i], tokens, FED - 50 * (size_t)i, NULL, 0);
        rig_save(w.s[i], path(), host_of(i));
        w.bytes[i] = read_all(path(), &w.size[i]);
    }
    return 0;
}

static int close_world(void **state)
{
    for (int i = 0; i < 2; i++) {
        minfer_session_free(w.s[i]);
        mf_free(w.bytes[i]);
    }
    minfer_engine_free(w.e);
    minfer_model_free(w.m);
    return rig_folder_drop(state);
}

/* Which session's file stands there; fails the test when it is none. */
static int which(const char *at)
{
    size_t n;
    char *bytes = read_all(at, &n);
    int i = 0;
    while (i < 2 && (n != w.size[i] || memcmp(bytes, w.bytes[i], n) != 0)) i++;
    mf_free(bytes);
    if (i == 2) fail_msg("%s: %zu bytes that are neither file", at, n);
    return i;
}

static bool tmp_left(void)
{
    return file_exists(rig_path("s.kv.tmp"));
}

/* In a child: 0 when saved. */
static int save_quietly(int i, const char *at)
{
    minfer_error err;
    return minfer_session_save(w.s[i], at, host_of(i), strlen(host_of(i)), &err) == MINFER_OK ? 0 : 1;
}

/* ---- kills ---- */

/* Kills a child that saves session i at its k-th entry to or exit from the system. true: it had finished.
 * *traced is false when this machine does not let us look. */
static bool kill_at(int i, int k, bool *traced)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(99);
        raise(SIGSTOP);
        _exit(save_quietly(i, path()));
    }
    assert_true(pid > 0);
    *traced = waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);
    for (int n = 0; *traced && n < k && WIFSTOPPED(status); n++) {
        if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) != 0) *traced = false;
        waitpid(pid, &status, 0);
    }
    bool finished = WIFEXITED(status);
    if (finished) {
        assert_int_equal(WEXITSTATUS(status), *traced ? 0 : 99);
        return true;
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return false;
}

static void killed_at_every_system_call(void **state)
{
    (void)state;
    bool traced = true, finished = false;
    int k = 0, fresh = 0, old = 0;
    rig_save(w.s[0], path(), host_of(0));
    for (; traced && !finished; k++) {
        int before = which(path());
        finished = kill_at(!before, k, &traced);
        if (which(path()) == before)
            old++;
        else
            fresh++;
    }
    if (!traced) SKIP_BECAUSE("processes cannot be traced here");
    print_message("%d points, the old file at %d, the new one at %d\n", k, old, fresh);
    assert_true(k > 20 && old > 10 && fresh > 1);
    rig_save(w.s[0], path(), host_of(0)); /* what was left is taken over */
    assert_int_equal(which(path()), 0);
    assert_false(tmp_left());
}

static void killed_at_random_moments(void **state)
{
    (void)state;
    mf_rng r;
    mf_rng_seed(&r, 5);
    for (int n = 0; n < KILLS; n++) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            for (int i = 0;; i++)
                if (save_quietly(i % 2, path()) != 0) _exit(1);
        usleep((useconds_t)(mf_rng_u64(&r) % 3000));
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        which(path());
    }
    minfer_session_free(rig_restore(w.e, path(), host_of(which(path()))));
    rig_save(w.s[0], path(), host_of(0));
    assert_false(tmp_left());
}

static void two_savers_take_turns(void **state)
{
    (void)state;
    pid_t pid[2];
    int status;
    for (int i = 0; i < 2; i++) {
        pid[i] = fork();
        if (pid[i] != 0) continue;
        for (int n = 0; n < TURNS; n++)
            if (save_quietly(i, path()) != 0) _exit(1);
        _exit(0);
    }
    for (int n = 0; n < 2 * TURNS; n++) which(path());
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    which(path());
    assert_false(tmp_left());
}

/* ---- no room ---- */

static void a_file_size_limit_leaves_the_old_file(void **state)
{
    (void)state;
    minfer_error err = {0};
    struct rlimit was, low;
    rig_save(w.s[0], path(), host_of(0));
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    for (size_t limit = 0; limit < w.size[1]; limit += w.size[1] / 7) {
        low = (struct rlimit){limit, was.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
        minfer_status st = minfer_session_save(w.s[1], path(), host_of(1), strlen(host_of(1)), &err);
        setrlimit(RLIMIT_FSIZE, &was);
        assert_fails(st, MINFER_ERR_IO, &err, "s.kv: cannot be written: File too large");
        assert_int_equal(which(path()), 0);
        assert_false(tmp_left());
    }
    signal(SIGXFSZ, handler);
}

enum { NO_MOUNT = 77 };

/* In a child with a small file system of its own: the code says what went wrong. */
static int fill_the_disk(void)
{
    char at[160], size[40];
    minfer_error err = {0};
    struct stat sb;
    snprintf(size, sizeof size, "size=%zu", w.size[1] + (64 << 10));
    const char *disk = rig_path("disk");
    if (mkdir(disk, 0700) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("minfer", disk, "tmpfs", 0, size) != 0)
        return NO_MOUNT;
    snprintf(at, sizeof at, "%s/s.kv", disk);
    if (save_quietly(1, at) != 0) return 1;
    minfer_status st = minfer_session_save(w.s[0], at, NULL, 0, &err);
    if (st != MINFER_ERR_IO || !strstr(err.message, "s.kv: cannot be written: No space left")) return 2;
    if (which(at) != 1) return 3;
    snprintf(at, sizeof at, "%s/s.kv.tmp", disk);
    return stat(at, &sb) == 0 ? 4 : 0;
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(fill_the_disk());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_MOUNT) SKIP_BECAUSE("no small file system can be mounted here");
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- places ---- */

static void places_where_no_file_can_be(void **state)
{
    (void)state;
    minfer_error err = {0};
    const char *dir = rig_path("dir"), *fifo = rig_path("fifo"), *link = rig_path("victim.kv.tmp");
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_fails(minfer_session_save(w.s[0], dir, NULL, 0, &err), MINFER_ERR_IO, &err,
                 "dir: cannot be saved: is a directory");
    assert_fails(minfer_session_save(w.s[0], fifo, NULL, 0, &err), MINFER_ERR_IO, &err, "not a file");
    assert_fails(minfer_session_save(w.s[0], rig_path("none/s.kv"), NULL, 0, &err), MINFER_ERR_IO, &err,
                 "none/s.kv: cannot make a temporary file: No such file");
    assert_fails(minfer_session_save(w.s[0], rig_path("s.kv/s.kv"), NULL, 0, &err), MINFER_ERR_IO, &err,
                 "Not a directory");
    assert_fails(minfer_session_save(w.s[0], "", NULL, 0, &err), MINFER_ERR_IO, &err, "No such file");
    assert_int_equal(symlink(path(), link), 0); /* someone else's trap is not written through */
    assert_fails(minfer_session_save(w.s[1], rig_path("victim.kv"), NULL, 0, &err), MINFER_ERR_IO, &err,
                 "temporary file");
    which(path());
}

static void what_a_killed_saver_left_is_written_over(void **state)
{
    (void)state;
    FILE *f = fopen(rig_path("s.kv.tmp"), "wb");
    assert_non_null(f);
    for (size_t i = 0; i < 2 * w.size[0]; i++) fputc('x', f);
    fclose(f);
    rig_save(w.s[0], path(), host_of(0));
    assert_int_equal(which(path()), 0);
    assert_false(tmp_left());
}

static void only_its_owner_reads_it(void **state)
{
    (void)state;
    struct stat sb;
    rig_save(w.s[0], path(), host_of(0));
    assert_int_equal(stat(path(), &sb), 0);
    assert_int_equal(sb.st_mode & 0777, 0600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_every_system_call),
        cmocka_unit_test(killed_at_random_moments),
        cmocka_unit_test(two_savers_take_turns),
        cmocka_unit_test(a_file_size_limit_leaves_the_old_file),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(places_where_no_file_can_be),
        cmocka_unit_test(what_a_killed_saver_left_is_written_over),
        cmocka_unit_test(only_its_owner_reads_it),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
