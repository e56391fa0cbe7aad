#ifndef SHA256_SCHEDULE_AVX2_H
#define SHA256_SCHEDULE_AVX2_H

// Common to the paths with vector instructions: the words of eight blocks, one block a lane.

#include <immintrin.h>

#include "sha256_pair.h"

#define WITH_AVX2 __attribute__((target("avx2")))

enum {
    BLOCK_BYTES = 64,
    /// Blocks whose message schedules are computed at once.
    BLOCKS_AT_ONCE = 8,
};

/// The words of the message schedule plus their round constants, for each block: W + K of FIPS
/// 180-4, section 6.2.2. The words of one round are neighbours.
struct schedule {
    uint32_t words[64][BLOCKS_AT_ONCE] __attribute__((aligned(32)));
};

/// Turns eight rows into columns. Row i of the argument holds four words of block i in its lower
/// half and four of block i + 4 in its upper half for i < 4; rows 4 to 7 hold the next four words.
WITH_AVX2 static inline void transpose(__m256i rows[8])
{
    __m256i pairs[8];
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        rows[i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
        rows[i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
        rows[i + 2] = _mm256_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
        rows[i + 3] = _mm256_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
}

/// Returns 16 bytes of one block in the lower half and of another in the upper, as words.
WITH_AVX2 static inline __m256i loadWords(const uint8_t *lower, const uint8_t *upper)
{
    const __m256i bigEndian = _mm256_broadcastsi128_si256(
        _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
    __m128i low = _mm_loadu_si128((const __m128i *)lower);
    __m128i high = _mm_loadu_si128((const __m128i *)upper);
    __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    return _mm256_shuffle_epi8(both, bigEndian);
}

/// Loads the sixteen words of each block. With fewer than eight blocks the last one is repeated.
WITH_AVX2 static inline void loadBlocks(__m256i words[16], const uint8_t *blocks, size_t count)
{
    const uint8_t *block[BLOCKS_AT_ONCE];
    for (size_t i = 0; i < BLOCKS_AT_ONCE; i++) {
        block[i] = blocks + BLOCK_BYTES * (i < count ? i : count - 1);
    }
    for (int half = 0; half < 2; half++) {
        __m256i *rows = &words[8 * half];
        for (int i = 0; i < 8; i++) {
            const int offset = 32 * half + 16 * (i / 4);
            rows[i] = loadWords(block[i % 4] + offset, block[i % 4 + 4] + offset);
        }
        transpose(rows);
    }
}

/// Stores the words of one round plus its constant.
WITH_AVX2 static inline void storeWords(struct schedule *schedule, int round, __m256i words)
{
    __m256i constant = _mm256_set1_epi32((int)roundConstants[round]);
    __m256i *stored = (__m256i *)schedule->words[round];
    _mm256_store_si256(stored, _mm256_add_epi32(words, constant));
}

#endif
