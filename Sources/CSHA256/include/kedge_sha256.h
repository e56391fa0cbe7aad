#ifndef KEDGE_SHA256_H
#define KEDGE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Returns true when this processor has the instructions that `kedge_sha256_pair` uses.
bool kedge_sha256_pair_is_supported(void);

/// Updates two SHA-256 computations with the same complete blocks of 64 bytes (FIPS 180-4, section
/// 6.2). Both take about as long as one alone: the message schedule is computed once, and the
/// processor runs the independent rounds in parallel. Must not be called where it is not supported.
///
/// - first, second: The eight words of each state, in native byte order.
/// - blocks: blockCount × 64 readable bytes, of any alignment.
void kedge_sha256_pair(
    uint32_t first[8], uint32_t second[8], const uint8_t *blocks, size_t blockCount);

#endif
