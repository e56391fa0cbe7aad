#include "sha256_pair.h"

#if defined(__x86_64__)

#include <immintrin.h>

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

WITH_SHA void kedge_sha256_pair_sha_ni(
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
            const uint32_t *constants = &roundConstants[4 * i];
            __m128i words = _mm_add_epi32(m[i % 4], _mm_loadu_si128((const __m128i *)constants));
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

#endif
