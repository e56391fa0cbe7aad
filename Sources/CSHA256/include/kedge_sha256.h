#ifndef KEDGE_SHA256_H
#define KEDGE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The instructions with which two SHA-256 computations over the same bytes share work.
typedef enum kedge_sha256_pair_path {
    /// The SHA instructions of x86-64.
    KEDGE_SHA256_PAIR_SHA_NI,
    /// The vector instructions of x86-64 with AVX-512F and AVX-512VL.
    KEDGE_SHA256_PAIR_AVX512,
    /// The vector instructions of x86-64 with AVX2.
    KEDGE_SHA256_PAIR_AVX2,
    /// The SHA-2 instructions of ARMv8 in its 64-bit state.
    KEDGE_SHA256_PAIR_ARMV8,
} kedge_sha256_pair_path;

/// Returns true when the processor and the system support the instructions of the path. Asks them
/// each time, which can take microseconds in a virtual machine.
bool kedge_sha256_pair_path_is_supported(kedge_sha256_pair_path path);

/// Returns true when this build of the path is faster than two computations one after the other.
/// The paths that use vector instructions are not when they are compiled without optimization.
bool kedge_sha256_pair_path_is_fast(kedge_sha256_pair_path path);

/// Updates two SHA-256 computations with the same complete blocks of 64 bytes (FIPS 180-4, section
/// 6.2). The message schedule is computed once, and the independent rounds run side by side. Must
/// not be called with a path that is not supported.
///
/// - first, second: The eight words of each state, in native byte order.
/// - blocks: blockCount × 64 readable bytes, of any alignment.
void kedge_sha256_pair_update(
    kedge_sha256_pair_path path, uint32_t first[8], uint32_t second[8], const uint8_t *blocks,
    size_t blockCount);

#endif
