/* The table of backends, by id. A new backend is one folder and one row. */
#include "backends/backend.h"
#include "backends/cpu/cpu.h"

const mf_backend mf_backend_table[MF_BACKEND_COUNT] = {
    [MF_BACKEND_CPU] = {MF_BACKEND_CPU, "cpu", 100, &mf_cpu_caps, mf_cpu_usable, mf_cpu_open},
    [MF_BACKEND_METAL] = {MF_BACKEND_METAL, "metal", 300, NULL, NULL, NULL},
    [MF_BACKEND_CUDA] = {MF_BACKEND_CUDA, "cuda", 200, NULL, NULL, NULL},
};
