/* What the system says about the processor: Linux in the auxiliary vector, macOS by sysctl. Elsewhere what
 * the compiler was told to assume. */
#include "base/cpuarm.h"

#if defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>

/* Bits of the kernel's interface (arch/arm64/include/uapi/asm/hwcap.h); older headers lack the second. */
enum { CAP_ASIMDDP = 1 << 20, CAP2_I8MM = 1 << 13 };

bool mf_cpu_has_dotprod(void)
{
    return (getauxval(AT_HWCAP) & CAP_ASIMDDP) != 0;
}

bool mf_cpu_has_i8mm(void)
{
    return (getauxval(AT_HWCAP2) & CAP2_I8MM) != 0;
}

#elif defined(__aarch64__) && defined(__APPLE__)

#include <stddef.h>
#include <sys/sysctl.h>

static bool has(const char *name)
{
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value != 0;
}

bool mf_cpu_has_dotprod(void)
{
    return has("hw.optional.arm.FEAT_DotProd");
}

bool mf_cpu_has_i8mm(void)
{
    return has("hw.optional.arm.FEAT_I8MM");
}

#else

bool mf_cpu_has_dotprod(void)
{
#ifdef __ARM_FEATURE_DOTPROD
    return true;
#else
    return false;
#endif
}

bool mf_cpu_has_i8mm(void)
{
#ifdef __ARM_FEATURE_MATMUL_INT8
    return true;
#else
    return false;
#endif
}

#endif
