import KedgeHash
import Testing

/// R22: all paths hash a chunk and its file alike. A path that the processor lacks is skipped.
struct PairPathTests {
    private static let lacking = SHA256PairPath.allCases.filter { !$0.isSupported }

    @Test(
        .enabled(if: SHA256PairPath.shaNI.isSupported, "sha-ni: not on this processor"),
        arguments: PairCheck.all)
    func `the path sha-ni gives published digests and those of libcrypto`(check: PairCheck) {
        check.run(.shaNI)
    }

    @Test(
        .enabled(if: SHA256PairPath.avx512.isSupported, "avx512: not on this processor"),
        arguments: PairCheck.all)
    func `the path avx512 gives published digests and those of libcrypto`(check: PairCheck) {
        check.run(.avx512)
    }

    @Test(
        .enabled(if: SHA256PairPath.avx2.isSupported, "avx2: not on this processor"),
        arguments: PairCheck.all)
    func `the path avx2 gives published digests and those of libcrypto`(check: PairCheck) {
        check.run(.avx2)
    }

    @Test(
        .enabled(if: SHA256PairPath.armv8.isSupported, "armv8: not on this processor"),
        arguments: PairCheck.all)
    func `the path armv8 gives published digests and those of libcrypto`(check: PairCheck) {
        check.run(.armv8)
    }

    @Test(arguments: PairCheck.all)
    func `the path libcrypto gives published digests`(check: PairCheck) {
        check.run(.libcrypto)
    }

    @Test func `the best path is supported, and libcrypto always is`() {
        #expect(SHA256PairPath.best.isSupported)
        #expect(SHA256PairPath.libcrypto.isSupported)
    }

    @Test func `a supported path can be selected`() throws {
        // Other tests may hash meanwhile: all paths have the same results.
        for path in SHA256PairPath.supported {
            try SHA256PairPath.select(path)
            #expect(SHA256PairPath.current == path)
        }
        try SHA256PairPath.select(.best)
        #expect(SHA256PairPath.current == .best)
    }

    @Test(arguments: lacking)
    func `a path that the processor lacks is refused`(path: SHA256PairPath) {
        let error = #expect(throws: UnsupportedSHA256PairPath.self) {
            try SHA256PairPath.select(path)
        }
        #expect(error?.path == path)
    }
}
