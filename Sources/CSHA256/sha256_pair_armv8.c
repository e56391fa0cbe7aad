#include "sha256_pair.h"

#if HAS_ARMV8

#include <arm_neon.h>

#ifdef __clang__
#define WITH_SHA2 __attribute__((target("sha2")))
#else
#define WITH_SHA2 __attribute__((target("+crypto")))
#endif

struct state {
    uint32x4_t abcd, efgh;
};

WITH_SHA2 static inline struct state load(const uint32_t words[8])
{
    struct state state = { .abcd = vld1q_u32(&words[0]), .efgh = vld1q_u32(&words[4]) };
    return state;
}

WITH_SHA2 static inline void store(uint32_t words[8], struct state state)
{
    vst1q_u32(&words[0], state.abcd);
    vst1q_u32(&words[4], state.efgh);
}

WITH_SHA2 static inline struct state add(struct state left, struct state right)
{
    struct state sum = {
        .abcd = vaddq_u32(left.abcd, right.abcd),
        .efgh = vaddq_u32(left.efgh, right.efgh),
    };
    return sum;
}

/// Computes four rounds; `words` are four schedule words plus their round constants.
WITH_SHA2 static inline struct state fourRounds(struct state state, uint32x4_t words)
{
    struct state next = {
        .abcd = vsha256hq_u32(state.abcd, state.efgh, words),
        .efgh = vsha256h2q_u32(state.efgh, state.abcd, words),
    };
    return next;
}

/// Returns the next four schedule words, given the previous sixteen, oldest first.
WITH_SHA2 static inline uint32x4_t extend(
    uint32x4_t m0, uint32x4_t m1, uint32x4_t m2, uint32x4_t m3)
{
    return vsha256su1q_u32(vsha256su0q_u32(m0, m1), m2, m3);
}

WITH_SHA2 void kedge_sha256_pair_armv8(
    uint32_t first[8], uint32_t second[8], const uint8_t *blocks, size_t blockCount)
{
    struct state a = load(first), b = load(second);
    for (; blockCount > 0; blockCount--, blocks += 64) {
        const struct state beforeA = a, beforeB = b;
        uint32x4_t m[4];
        for (int i = 0; i < 4; i++) {
            m[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(blocks + 16 * i)));
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < 16; i++) {
            if (i >= 4) {
                m[i % 4] = extend(m[i % 4], m[(i + 1) % 4], m[(i + 2) % 4], m[(i + 3) % 4]);
            }
            uint32x4_t constants = vld1q_u32(&roundConstants[4 * i]);
            uint32x4_t words = vaddq_u32(m[i % 4], constants);
            a = fourRounds(a, words);
            b = fourRounds(b, words);
        }
        a = add(a, beforeA);
        b = add(b, beforeB);
    }
    store(first, a);
    store(second, b);
}

#endif
