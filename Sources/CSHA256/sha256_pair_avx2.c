#include "sha256_pair.h"

#if defined(__x86_64__)

#include "sha256_schedule_avx2.h"

WITH_AVX2 static inline __m256i xorAll(__m256i x, __m256i y, __m256i z)
{
    return _mm256_xor_si256(_mm256_xor_si256(x, y), z);
}

WITH_AVX2 static inline __m256i rotateRight(__m256i x, int count)
{
    return _mm256_or_si256(_mm256_srli_epi32(x, count), _mm256_slli_epi32(x, 32 - count));
}

WITH_AVX2 static inline __m256i smallSigma0(__m256i x)
{
    return xorAll(rotateRight(x, 7), rotateRight(x, 18), _mm256_srli_epi32(x, 3));
}

WITH_AVX2 static inline __m256i smallSigma1(__m256i x)
{
    return xorAll(rotateRight(x, 17), rotateRight(x, 19), _mm256_srli_epi32(x, 10));
}

/// Computes the message schedules of up to eight blocks.
WITH_AVX2 static void computeSchedule(
    struct schedule *schedule, const uint8_t *blocks, size_t count)
{
    __m256i w[16];
    loadBlocks(w, blocks, count);
    for (int i = 0; i < 16; i++) storeWords(schedule, i, w[i]);
    for (int start = 16; start < 64; start += 16) {
#pragma clang loop unroll(full)
        for (int i = 0; i < 16; i++) {
            __m256i older = _mm256_add_epi32(w[i], smallSigma0(w[(i + 1) % 16]));
            __m256i newer = _mm256_add_epi32(w[(i + 9) % 16], smallSigma1(w[(i + 14) % 16]));
            w[i] = _mm256_add_epi32(older, newer);
            storeWords(schedule, start + i, w[i]);
        }
    }
}

/// The working variables of both states, as in sha256_pair_avx512.c, which says why a is one round
/// behind e. Each half of a register is one state: a twice, then e twice. There is no instruction
/// that rotates words, but a shift of a pair of equal words leaves the rotated word in its lower
/// half.
struct variables {
    __m256i newest, second, third, oldest;
};

struct state {
    struct variables variables;
    /// a of each state: between two blocks the variables have only b to h.
    __m256i a;
};

enum {
    /// The words of e, for _mm256_blend_epi32.
    HALF_OF_E = 0xcc,
};

/// Adds words. In assembly, because the compiler would add the terms of a sum in another order, and
/// more additions would wait for the round before.
WITH_AVX2 static inline __m256i addInOrder(__m256i left, __m256i right)
{
    __m256i sum;
    __asm__("vpaddd %2, %1, %0" : "=x"(sum) : "x"(left), "x"(right));
    return sum;
}

/// Repeats the lower word of each pair.
WITH_AVX2 static inline __m256i repeatLower(__m256i x) { return _mm256_shuffle_epi32(x, 0xa0); }

/// Returns Sigma0 of a and Sigma1 of e in the lower word of each pair.
WITH_AVX2 static inline __m256i bigSigma(__m256i x)
{
    return xorAll(
        _mm256_srlv_epi64(x, _mm256_setr_epi64x(2, 6, 2, 6)),
        _mm256_srlv_epi64(x, _mm256_setr_epi64x(13, 11, 13, 11)),
        _mm256_srlv_epi64(x, _mm256_setr_epi64x(22, 25, 22, 25)));
}

/// Returns Maj for a and Ch for e. Maj(x, y, z) is y where x and z differ, and z elsewhere.
WITH_AVX2 static inline __m256i majorityOrChoice(struct variables v)
{
    const __m256i halfOfA = _mm256_setr_epi64x(-1, 0, -1, 0);
    __m256i selector = _mm256_xor_si256(v.newest, _mm256_and_si256(v.third, halfOfA));
    __m256i difference = _mm256_xor_si256(v.second, v.third);
    return _mm256_xor_si256(_mm256_and_si256(selector, difference), v.third);
}

WITH_AVX2 static inline struct state hashBlock(
    struct state state, const struct schedule *schedule, size_t block)
{
    const __m256i zero = _mm256_setzero_si256();
    struct variables v = state.variables;
    __m256i t1 = zero;
#pragma clang loop unroll(full)
    for (int round = 0; round < 64; round++) {
        __m256i word = _mm256_set1_epi32((int)schedule->words[round][block]);
        __m256i known = _mm256_add_epi32(v.oldest, word);
        // T1 of the round before for a, and d for e.
        __m256i moved = _mm256_alignr_epi8(v.third, t1, 8);
        moved = addInOrder(moved, _mm256_blend_epi32(zero, known, HALF_OF_E));
        __m256i logical = majorityOrChoice(v);
        moved = addInOrder(logical, moved);
        known = addInOrder(logical, known);
        __m256i sigma = bigSigma(v.newest);
        __m256i newest = repeatLower(addInOrder(sigma, moved));
        t1 = addInOrder(sigma, known);
        // Round 0 would compute the a of the state again.
        if (round == 0) newest = _mm256_blend_epi32(state.a, newest, HALF_OF_E);
        v.oldest = v.third;
        v.third = v.second;
        v.second = v.newest;
        v.newest = newest;
    }
    // The last round of a, which is one behind.
    __m256i a = _mm256_add_epi32(bigSigma(v.newest), majorityOrChoice(v));
    a = repeatLower(_mm256_add_epi32(a, _mm256_unpackhi_epi64(t1, t1)));
    state.a = _mm256_add_epi32(state.a, a);
    state.variables.newest = _mm256_add_epi32(state.variables.newest, v.newest);
    state.variables.second = _mm256_add_epi32(state.variables.second, v.second);
    state.variables.third = _mm256_add_epi32(state.variables.third, v.third);
    state.variables.oldest = _mm256_add_epi32(state.variables.oldest, v.oldest);
    return state;
}

/// Returns two words of each state in one register.
WITH_AVX2 static inline __m256i loadStates(
    const uint32_t first[8], const uint32_t second[8], int ofA, int ofE)
{
    return repeatLower(_mm256_setr_epi32(
        (int)first[ofA], 0, (int)first[ofE], 0, (int)second[ofA], 0, (int)second[ofE], 0));
}

WITH_AVX2 static inline void storeStates(
    uint32_t first[8], uint32_t second[8], int ofA, int ofE, __m256i words)
{
    uint32_t stored[8];
    _mm256_storeu_si256((__m256i *)stored, words);
    first[ofA] = stored[0];
    first[ofE] = stored[2];
    second[ofA] = stored[4];
    second[ofE] = stored[6];
}

WITH_AVX2 void kedge_sha256_pair_avx2(
    uint32_t first[8], uint32_t second[8], const uint8_t *blocks, size_t blockCount)
{
    struct schedule schedule;
    struct state state = {
        .variables = {
            .newest = loadStates(first, second, 1, 4),
            .second = loadStates(first, second, 2, 5),
            .third = loadStates(first, second, 3, 6),
            .oldest = loadStates(first, second, 0, 7),
        },
        .a = loadStates(first, second, 0, 7),
    };
    while (blockCount > 0) {
        size_t count = blockCount < BLOCKS_AT_ONCE ? blockCount : BLOCKS_AT_ONCE;
        computeSchedule(&schedule, blocks, count);
        for (size_t block = 0; block < count; block++) {
            state = hashBlock(state, &schedule, block);
        }
        blocks += BLOCK_BYTES * count;
        blockCount -= count;
    }
    storeStates(first, second, 1, 4, state.variables.newest);
    storeStates(first, second, 2, 5, state.variables.second);
    storeStates(first, second, 3, 6, state.variables.third);
    // a, and h.
    storeStates(
        first, second, 0, 7,
        _mm256_blend_epi32(state.a, state.variables.oldest, HALF_OF_E));
}

#endif
