#include "sha256_pair.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif HAS_ARMV8 && defined(__linux__)
#include <sys/auxv.h>
#elif HAS_ARMV8 && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#if defined(__x86_64__)

/// Returns register XCR0, whose bits are the parts of the processor's state that the system saves
/// (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, section 13.3). Must not
/// be called without OSXSAVE.
static uint64_t stateSavedBySystem(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool hasAll(uint64_t bits, uint64_t wanted) { return (bits & wanted) == wanted; }

bool kedge_sha256_pair_path_is_supported(kedge_sha256_pair_path path)
{
    const uint32_t ssse3 = 1u << 9, sse41 = 1u << 19, osxsave = 1u << 27;
    const uint32_t avx2 = 1u << 5, avx512f = 1u << 16, sha = 1u << 29, avx512vl = 1u << 31;
    // XMM and the upper halves of YMM; for AVX-512 also the mask registers and all of ZMM.
    const uint64_t stateOfAVX = 0x06, stateOfAVX512 = 0xe6;
    uint32_t eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
    const uint32_t basic = ecx;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
    const uint32_t extended = ebx;
    const uint64_t saved = (basic & osxsave) ? stateSavedBySystem() : 0;
    switch (path) {
    case KEDGE_SHA256_PAIR_SHA_NI:
        return hasAll(basic, ssse3 | sse41) && hasAll(extended, sha);
    case KEDGE_SHA256_PAIR_AVX512:
        return hasAll(saved, stateOfAVX512) && hasAll(extended, avx2 | avx512f | avx512vl);
    case KEDGE_SHA256_PAIR_AVX2:
        return hasAll(saved, stateOfAVX) && hasAll(extended, avx2);
    case KEDGE_SHA256_PAIR_ARMV8:
        return false;
    }
    return false;
}

void kedge_sha256_pair_update(
    kedge_sha256_pair_path path, uint32_t first[8], uint32_t second[8], const uint8_t *blocks,
    size_t blockCount)
{
    switch (path) {
    case KEDGE_SHA256_PAIR_SHA_NI:
        kedge_sha256_pair_sha_ni(first, second, blocks, blockCount);
        return;
    case KEDGE_SHA256_PAIR_AVX512:
        kedge_sha256_pair_avx512(first, second, blocks, blockCount);
        return;
    case KEDGE_SHA256_PAIR_AVX2:
        kedge_sha256_pair_avx2(first, second, blocks, blockCount);
        return;
    case KEDGE_SHA256_PAIR_ARMV8:
        break;
    }
    __builtin_trap();
}

#else

/// Returns true when the processor has the SHA-2 instructions of ARMv8.
static bool hasARMv8(void)
{
#if HAS_ARMV8 && defined(__linux__)
    // HWCAP_SHA2 of asm/hwcap.h, which not every C library brings.
    const unsigned long sha2 = 1ul << 6;
    return (getauxval(AT_HWCAP) & sha2) != 0;
#elif HAS_ARMV8 && defined(__APPLE__)
    int value = 0;
    size_t size = sizeof(value);
    return sysctlbyname("hw.optional.arm.FEAT_SHA256", &value, &size, NULL, 0) == 0 && value != 0;
#else
    return false;
#endif
}

bool kedge_sha256_pair_path_is_supported(kedge_sha256_pair_path path)
{
    return path == KEDGE_SHA256_PAIR_ARMV8 && hasARMv8();
}

void kedge_sha256_pair_update(
    kedge_sha256_pair_path path, uint32_t first[8], uint32_t second[8], const uint8_t *blocks,
    size_t blockCount)
{
#if HAS_ARMV8
    if (path == KEDGE_SHA256_PAIR_ARMV8) {
        kedge_sha256_pair_armv8(first, second, blocks, blockCount);
        return;
    }
#endif
    (void)path, (void)first, (void)second, (void)blocks, (void)blockCount;
    __builtin_trap();
}

#endif

bool kedge_sha256_pair_path_is_fast(kedge_sha256_pair_path path)
{
#ifdef __OPTIMIZE__
    (void)path;
    return true;
#else
    return path != KEDGE_SHA256_PAIR_AVX512 && path != KEDGE_SHA256_PAIR_AVX2;
#endif
}
