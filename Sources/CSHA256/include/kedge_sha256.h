#ifndef KEDGE_SHA256_H
#define KEDGE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// True when this processor has the instructions that ``kedge_sha256_pair`` is written in.
bool kedge_sha256_pair_is_supported(void);

/// Carries two SHA-256 computations on over the same whole blocks of 64 bytes (FIPS 180-4, section 6.2).
///
/// The message schedule, which depends on the blocks alone, is computed once, and the rounds of the two
/// are independent of each other, so the processor runs them side by side: both take about as long as
/// one alone. Must not be called where it is not supported.
///
/// - first, second: the eight words of each state, in the machine's byte order
/// - blocks: blockCount × 64 readable bytes, of any alignment
void kedge_sha256_pair(
    uint32_t first[8], uint32_t second[8], const uint8_t *blocks, size_t blockCount);

#endif
