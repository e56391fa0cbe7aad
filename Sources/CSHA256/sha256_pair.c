#include "kedge_sha256.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

static const uint32_t roundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

bool kedge_sha256_pair_is_supported(void)
{
    unsigned int eax, ebx, ecx, edx;
    const unsigned int ssse3 = 1u << 9, sse41 = 1u << 19, sha = 1u << 29;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & ssse3) || !(ecx & sse41)) return false;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & sha) != 0;
}

#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))

/// The eight state words in the order of the SHA instructions.
struct state {
    __m128i abef, cdgh;
};

WITH_SHA static inline struct state load(const uint32_t words[8])
{
    __m128i dcba = _mm_loadu_si128((const __m128i *)&words[0]);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)&words[4]);
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    struct state state = {
        .abef = _mm_alignr_epi8(cdab, efgh, 8),
        .cdgh = _mm_blend_epi16(efgh, cdab, 0xf0),
    };
    return state;
}

WITH_SHA static inline void store(uint32_t words[8], struct state state)
{
    __m128i feba = _mm_shuffle_epi32(state.abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(state.cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)&words[0], _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)&words[4], _mm_alignr_epi8(dchg, feba, 8));
}

/// Computes four rounds; `words` are four schedule words plus their round constants.
WITH_SHA static inline void fourRounds(struct state *state, __m128i words)
{
    state->cdgh = _mm_sha256rnds2_epu32(state->cdgh, state->abef, words);
    words = _mm_shuffle_epi32(words, 0x0e);
    state->abef = _mm_sha256rnds2_epu32(state->abef, state->cdgh, words);
}

/// Returns the next four schedule words, given the previous sixteen, oldest first.
WITH_SHA static inline __m128i extend(__m128i m0, __m128i m1, __m128i m2, __m128i m3)
{
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(m0, m1), _mm_alignr_epi8(m3, m2, 4));
    return _mm_sha256msg2_epu32(sum, m3);
}

WITH_SHA void kedge_sha256_pair(
    uint32_t first[8], uint32_t second[8], const uint8_t *blocks, size_t blockCount)
{
    const __m128i bigEndian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    struct state a = load(first), b = load(second);
    for (; blockCount > 0; blockCount--, blocks += 64) {
        const struct state beforeA = a, beforeB = b;
        __m128i m[4];
        for (int i = 0; i < 4; i++) {
            m[i] = _mm_loadu_si128((const __m128i *)(blocks + 16 * i));
            m[i] = _mm_shuffle_epi8(m[i], bigEndian);
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < 16; i++) {
            if (i >= 4) {
                m[i % 4] = extend(m[i % 4], m[(i + 1) % 4], m[(i + 2) % 4], m[(i + 3) % 4]);
            }
            __m128i constants = _mm_loadu_si128((const __m128i *)&roundConstants[4 * i]);
            __m128i words = _mm_add_epi32(m[i % 4], constants);
            fourRounds(&a, words);
            fourRounds(&b, words);
        }
        a.abef = _mm_add_epi32(a.abef, beforeA.abef);
        a.cdgh = _mm_add_epi32(a.cdgh, beforeA.cdgh);
        b.abef = _mm_add_epi32(b.abef, beforeB.abef);
        b.cdgh = _mm_add_epi32(b.cdgh, beforeB.cdgh);
    }
    store(first, a);
    store(second, b);
}

#else

bool kedge_sha256_pair_is_supported(void) { return false; }

void kedge_sha256_pair(
    uint32_t first[8], uint32_t second[8], const uint8_t *blocks, size_t blockCount)
{
    (void)first, (void)second, (void)blocks, (void)blockCount;
    __builtin_trap();
}

#endif
