// Checks each path of CSHA256 that this processor supports: published messages (FIPS 180-4), and random
// blocks in random pieces at any alignment, compared with the plain SHA-256 below.
//
//   pair_driver NAME…    checks these paths, which must be exactly those that are supported
//
// Linked with --wrap=getauxval, so that it can act as a system that reports no features.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kedge_sha256.h"

#define BLOCK 64

static const struct {
    const char *name;
    kedge_sha256_pair_path path;
} paths[] = {
    { "sha-ni", KEDGE_SHA256_PAIR_SHA_NI },
    { "avx512", KEDGE_SHA256_PAIR_AVX512 },
    { "avx2", KEDGE_SHA256_PAIR_AVX2 },
    { "armv8", KEDGE_SHA256_PAIR_ARMV8 },
};
enum { PATH_COUNT = sizeof(paths) / sizeof(paths[0]) };

static const uint32_t initialState[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotateRight(uint32_t x, int count) { return x >> count | x << (32 - count); }

/// FIPS 180-4, section 6.2.2, word for word.
static void updatePlainly(uint32_t state[8], const uint8_t *blocks, size_t blockCount)
{
    for (; blockCount > 0; blockCount--, blocks += BLOCK) {
        uint32_t w[64], v[8];
        for (int t = 0; t < 16; t++) {
            const uint8_t *bytes = blocks + 4 * t;
            w[t] = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8
                | bytes[3];
        }
        for (int t = 16; t < 64; t++) {
            uint32_t x = w[t - 15], y = w[t - 2];
            w[t] = (rotateRight(y, 17) ^ rotateRight(y, 19) ^ y >> 10) + w[t - 7]
                + (rotateRight(x, 7) ^ rotateRight(x, 18) ^ x >> 3) + w[t - 16];
        }
        memcpy(v, state, sizeof(v));
        for (int t = 0; t < 64; t++) {
            uint32_t a = v[0], e = v[4];
            uint32_t t1 = v[7] + (rotateRight(e, 6) ^ rotateRight(e, 11) ^ rotateRight(e, 25))
                + ((e & v[5]) ^ (~e & v[6])) + constants[t] + w[t];
            uint32_t t2 = (rotateRight(a, 2) ^ rotateRight(a, 13) ^ rotateRight(a, 22))
                + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
            memmove(v + 1, v, 7 * sizeof(v[0]));
            v[4] += t1;
            v[0] = t1 + t2;
        }
        for (int i = 0; i < 8; i++) state[i] += v[i];
    }
}

static uint64_t randomState = 1;

/// SplitMix64.
static uint64_t nextRandom(void)
{
    uint64_t mixed = randomState += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

static void fail(const char *path, const char *check)
{
    fprintf(stderr, "%s: wrong state: %s\n", path, check);
    exit(1);
}

/// Hashes a message with its padding in both states, and compares them with the published digest.
static void checkMessage(int index, const char *message, size_t count, const uint32_t digest[8])
{
    size_t blockCount = (count + 8) / BLOCK + 1;
    uint8_t *blocks = calloc(blockCount, BLOCK);
    uint32_t first[8], second[8], plain[8];
    memcpy(blocks, message, count);
    blocks[count] = 0x80;
    for (int i = 0; i < 8; i++) {
        blocks[blockCount * BLOCK - 1 - (size_t)i] = (uint8_t)((uint64_t)count * 8 >> 8 * i);
    }
    memcpy(first, initialState, sizeof(first));
    memcpy(second, initialState, sizeof(second));
    memcpy(plain, initialState, sizeof(plain));
    kedge_sha256_pair_update(paths[index].path, first, second, blocks, blockCount);
    updatePlainly(plain, blocks, blockCount);
    free(blocks);
    if (memcmp(plain, digest, sizeof(plain)) != 0) fail("the plain SHA-256", message);
    if (memcmp(first, digest, sizeof(first)) != 0) fail(paths[index].name, message);
    if (memcmp(second, digest, sizeof(second)) != 0) fail(paths[index].name, message);
}

static void checkPublishedMessages(int index)
{
    const uint32_t empty[8] = {
        0xe3b0c442, 0x98fc1c14, 0x9afbf4c8, 0x996fb924,
        0x27ae41e4, 0x649b934c, 0xa495991b, 0x7852b855,
    };
    const uint32_t abc[8] = {
        0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
        0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad,
    };
    const uint32_t twoBlocks[8] = {
        0x248d6a61, 0xd20638b8, 0xe5c02693, 0x0c3e6039,
        0xa33ce459, 0x64ff2167, 0xf6ecedd4, 0x19db06c1,
    };
    const uint32_t million[8] = {
        0xcdc76e5c, 0x9914fb92, 0x81a1c7e2, 0x84d73e67,
        0xf1809a48, 0xa497200e, 0x046d39cc, 0xc7112cd0,
    };
    const char *text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    const size_t millionCount = 1000000;
    char *as = malloc(millionCount + 1);
    memset(as, 'a', millionCount);
    as[millionCount] = 0;
    checkMessage(index, "", 0, empty);
    checkMessage(index, "abc", 3, abc);
    checkMessage(index, text, strlen(text), twoBlocks);
    checkMessage(index, as, millionCount, million);
    free(as);
}

/// Hashes random blocks in pieces of up to 40 blocks. The two states differ.
static void checkRandomPieces(int index, uint64_t seed)
{
    enum { BLOCKS = 120 };
    static uint8_t memory[BLOCKS * BLOCK + BLOCK];
    uint32_t first[8], second[8], plainFirst[8], plainSecond[8];
    randomState = seed;
    for (size_t i = 0; i < sizeof(memory); i++) memory[i] = (uint8_t)nextRandom();
    for (int i = 0; i < 8; i++) {
        first[i] = plainFirst[i] = (uint32_t)nextRandom();
        second[i] = plainSecond[i] = (uint32_t)nextRandom();
    }
    const uint8_t *blocks = memory + nextRandom() % BLOCK;
    updatePlainly(plainFirst, blocks, BLOCKS);
    updatePlainly(plainSecond, blocks, BLOCKS);
    for (size_t done = 0; done < BLOCKS;) {
        size_t count = nextRandom() % 41;
        if (count > BLOCKS - done) count = BLOCKS - done;
        kedge_sha256_pair_update(paths[index].path, first, second, blocks + done * BLOCK, count);
        done += count;
    }
    char name[40];
    snprintf(name, sizeof(name), "random pieces of seed %llu", (unsigned long long)seed);
    if (memcmp(first, plainFirst, sizeof(first)) != 0) fail(paths[index].name, name);
    if (memcmp(second, plainSecond, sizeof(second)) != 0) fail(paths[index].name, name);
}

static bool hidesFeatures = false;
unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);

unsigned long __wrap_getauxval(unsigned long type)
{
    return hidesFeatures ? 0 : __real_getauxval(type);
}

static void checkHiddenFeatures(void)
{
    hidesFeatures = true;
    if (kedge_sha256_pair_path_is_supported(KEDGE_SHA256_PAIR_ARMV8)) {
        fprintf(stderr, "armv8 is supported although the system does not report SHA-2\n");
        exit(1);
    }
    hidesFeatures = false;
}

int main(int argc, char **argv)
{
    checkHiddenFeatures();
    for (int index = 0; index < PATH_COUNT; index++) {
        bool isWanted = false;
        for (int i = 1; i < argc; i++) isWanted |= strcmp(argv[i], paths[index].name) == 0;
        if (kedge_sha256_pair_path_is_supported(paths[index].path) != isWanted) {
            fprintf(stderr, "%s is %ssupported\n", paths[index].name, isWanted ? "not " : "");
            return 1;
        }
        if (!isWanted) continue;
        checkPublishedMessages(index);
        for (uint64_t seed = 1; seed <= 200; seed++) checkRandomPieces(index, seed);
        printf("%s: right\n", paths[index].name);
    }
    return 0;
}
