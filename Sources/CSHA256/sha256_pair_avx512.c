#include "sha256_pair.h"

#if defined(__x86_64__)

#include "sha256_schedule_avx2.h"

// Uses no registers of 512 bits: on some processors they lower the clock of the whole core.
#define WITH_AVX512 __attribute__((target("avx512f,avx512vl")))

// Truth tables of _mm_ternarylogic_epi32. Bit 4a + 2b + c is the result for the bits a, b and c.
enum {
    /// a ^ b ^ c
    PARITY = 0x96,
    /// a ? b : c
    CHOOSE = 0xca,
    /// a ^ (b & c)
    XOR_AND = 0x78,
};

WITH_AVX512 static inline __m256i smallSigma0(__m256i x)
{
    return _mm256_ternarylogic_epi32(
        _mm256_ror_epi32(x, 7), _mm256_ror_epi32(x, 18), _mm256_srli_epi32(x, 3), PARITY);
}

WITH_AVX512 static inline __m256i smallSigma1(__m256i x)
{
    return _mm256_ternarylogic_epi32(
        _mm256_ror_epi32(x, 17), _mm256_ror_epi32(x, 19), _mm256_srli_epi32(x, 10), PARITY);
}

/// Computes the message schedules of up to eight blocks.
WITH_AVX512 static void computeSchedule(
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

/// The working variables of both states. One register holds a of the first state and of the second,
/// then e of both. a is one round behind e: before round t the registers are
///
///     newest      a(t-1)  e(t)
///     second      a(t-2)  e(t-1)
///     third       a(t-3)  e(t-2)
///     oldest      unused  e(t-3)
///
/// in the notation of FIPS 180-4, section 6.2.2, where b, c, d are the last three values of a, and
/// f, g, h those of e. Round t computes
///
///     T1(t)  = Sigma1(e(t)) + Ch(e(t), e(t-1), e(t-2)) + e(t-3) + K(t) + W(t)
///     e(t+1) = T1(t) + a(t-3)
///     a(t)   = Sigma0(a(t-1)) + Maj(a(t-1), a(t-2), a(t-3)) + T1(t-1)
///
/// Both halves do the same work, and a word that moves to the other half is known one round before.
/// Only a rotation, a logical instruction and an addition wait for the round before.
struct variables {
    __m128i newest, second, third, oldest;
};

struct state {
    struct variables variables;
    /// a of both states, in the lower half: between two blocks the variables have only b to h.
    __m128i a;
};

/// Adds words. In assembly, because the compiler would add the terms of a sum in another order, and
/// more additions would wait for the round before.
WITH_AVX512 static inline __m128i addInOrder(__m128i left, __m128i right)
{
    __m128i sum;
    __asm__("vpaddd %2, %1, %0" : "=v"(sum) : "v"(left), "v"(right));
    return sum;
}

/// Returns Sigma0 of a and Sigma1 of e.
WITH_AVX512 static inline __m128i bigSigma(__m128i x)
{
    return _mm_ternarylogic_epi32(
        _mm_rorv_epi32(x, _mm_setr_epi32(2, 2, 6, 6)),
        _mm_rorv_epi32(x, _mm_setr_epi32(13, 13, 11, 11)),
        _mm_rorv_epi32(x, _mm_setr_epi32(22, 22, 25, 25)), PARITY);
}

/// Returns Maj for a and Ch for e. Maj(x, y, z) is y where x and z differ, and z elsewhere.
WITH_AVX512 static inline __m128i majorityOrChoice(struct variables v)
{
    const __m128i halfOfA = _mm_setr_epi32(-1, -1, 0, 0);
    __m128i selector = _mm_ternarylogic_epi32(v.newest, v.third, halfOfA, XOR_AND);
    return _mm_ternarylogic_epi32(selector, v.second, v.third, CHOOSE);
}

WITH_AVX512 static inline struct state hashBlock(
    struct state state, const struct schedule *schedule, size_t block)
{
    // Hidden from the compiler, which uses one more instruction for a known mask.
    __mmask8 halfOfE = 0x0c;
    __asm__("" : "+k"(halfOfE));
    struct variables v = state.variables;
    __m128i t1 = _mm_setzero_si128();
#pragma clang loop unroll(full)
    for (int round = 0; round < 64; round++) {
        __m128i word = _mm_set1_epi32((int)schedule->words[round][block]);
        __m128i known = _mm_add_epi32(v.oldest, word);
        // T1 of the round before for a, and d for e.
        __m128i moved = _mm_alignr_epi8(v.third, t1, 8);
        moved = _mm_mask_add_epi32(moved, halfOfE, moved, known);
        __m128i logical = majorityOrChoice(v);
        moved = addInOrder(logical, moved);
        known = addInOrder(logical, known);
        __m128i sigma = bigSigma(v.newest);
        __m128i newest = addInOrder(sigma, moved);
        t1 = addInOrder(sigma, known);
        // Round 0 would compute the a of the state again.
        if (round == 0) newest = _mm_mask_mov_epi32(state.a, halfOfE, newest);
        v.oldest = v.third;
        v.third = v.second;
        v.second = v.newest;
        v.newest = newest;
    }
    // The last round of a, which is one behind.
    __m128i a = _mm_add_epi32(bigSigma(v.newest), majorityOrChoice(v));
    a = _mm_add_epi32(a, _mm_unpackhi_epi64(t1, t1));
    state.a = _mm_add_epi32(state.a, a);
    state.variables.newest = _mm_add_epi32(state.variables.newest, v.newest);
    state.variables.second = _mm_add_epi32(state.variables.second, v.second);
    state.variables.third = _mm_add_epi32(state.variables.third, v.third);
    state.variables.oldest = _mm_add_epi32(state.variables.oldest, v.oldest);
    return state;
}

/// Returns two words of both states in one register.
WITH_AVX512 static inline __m128i loadStates(
    const uint32_t first[8], const uint32_t second[8], int ofA, int ofE)
{
    return _mm_setr_epi32((int)first[ofA], (int)second[ofA], (int)first[ofE], (int)second[ofE]);
}

WITH_AVX512 static inline void storeStates(
    uint32_t first[8], uint32_t second[8], int ofA, int ofE, __m128i words)
{
    uint32_t stored[4];
    _mm_storeu_si128((__m128i *)stored, words);
    first[ofA] = stored[0];
    second[ofA] = stored[1];
    first[ofE] = stored[2];
    second[ofE] = stored[3];
}

WITH_AVX512 void kedge_sha256_pair_avx512(
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
    storeStates(first, second, 0, 7, _mm_blend_epi32(state.a, state.variables.oldest, 0x0c));
}

#endif
