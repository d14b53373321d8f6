/* How many threads this process should use: cores it may run on, one per physical core, within the cgroup's
 * quota. */
#include "base/pool.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

static size_t first_sibling(size_t cpu)
{
    char path[96];
    size_t first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "r");
    if (!f) return cpu;
    if (fscanf(f, "%zu", &first) != 1) first = cpu;
    fclose(f);
    return first;
}

/* Physical cores of the affinity mask: a core counts once, however many of its threads are allowed. */
static int allowed_cores(void)
{
    cpu_set_t set, seen;
    int n = 0;
    CPU_ZERO(&seen);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set)) continue;
        size_t core = first_sibling(cpu);
        if (core >= CPU_SETSIZE || CPU_ISSET(core, &seen)) continue;
        CPU_SET(core, &seen);
        n++;
    }
    return n ? n : 1;
}

/* Whole CPUs that a quota file grants ("max 100000" or "150000 100000"); 0 when there is no limit. */
static int quota_of(const char *path)
{
    long long quota = -1, period = 0;
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    int got = fscanf(f, "%lld %lld", &quota, &period);
    fclose(f);
    if (got != 2 || quota <= 0 || period <= 0) return 0;
    return quota < period ? 1 : (int)(quota / period);
}

/* The smallest quota of this process's cgroup (version 2) and all its parents. */
static int cgroup_quota(void)
{
    char line[512], path[640];
    int least = 0;
    FILE *f = fopen("/proc/self/cgroup", "r");
    if (!f) return 0;
    bool found = false;
    while (fgets(line, sizeof line, f) && !found) found = strncmp(line, "0::", 3) == 0;
    fclose(f);
    if (!found) return 0;
    line[strcspn(line, "\n")] = 0;
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", line + 3);
        int q = quota_of(path);
        if (q > 0 && (least == 0 || q < least)) least = q;
        char *slash = strrchr(line + 3, '/');
        if (!slash) return least;
        *slash = 0;
    }
}

int mf_cpu_count(void)
{
    int cores = allowed_cores(), quota = cgroup_quota();
    if (quota > 0 && quota < cores) cores = quota;
    return cores > MF_MAX_THREADS ? MF_MAX_THREADS : cores;
}
