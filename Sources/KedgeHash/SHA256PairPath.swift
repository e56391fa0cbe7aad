internal import CSHA256
internal import Synchronization

/// The instructions that update two SHA-256 computations with the same bytes. The raw value is the
/// name for settings and logs.
///
/// All paths have the same results. The cases are in the order of their speed.
package enum SHA256PairPath: String, CaseIterable, Sendable {
    /// The SHA instructions of x86-64.
    case shaNI = "sha-ni"
    /// The vector instructions of x86-64 with AVX-512F and AVX-512VL.
    case avx512
    /// The vector instructions of x86-64 with AVX2.
    case avx2
    /// The SHA-2 instructions of ARMv8.
    case armv8
    /// Two updates with libcrypto, one after the other. Every processor supports this path.
    case libcrypto
}

extension SHA256PairPath {
    /// The paths that the processor and the system support.
    package static let supported = allCases.filter { path in
        path.instructions.map { kedge_sha256_pair_path_is_supported($0) } ?? true
    }

    /// The fastest supported path. A debug build prefers libcrypto to its own vector code, which is
    /// not optimized then.
    package static let best: SHA256PairPath =
        supported.first { path in
            path.instructions.map { kedge_sha256_pair_path_is_fast($0) } ?? true
        } ?? .libcrypto

    /// The index of the current path in ``supported``. Accesses need no order, because all paths
    /// have the same results.
    private static let selection = Atomic<Int>(supported.firstIndex(of: best) ?? 0)

    /// The path for updates that do not name one: ``best``, unless another one was selected.
    package static var current: SHA256PairPath {
        supported[selection.load(ordering: .relaxed)]
    }

    /// Makes a path the current one, for the whole process.
    ///
    /// - Throws: ``UnsupportedSHA256PairPath``; the current path stays.
    package static func select(_ path: SHA256PairPath) throws(UnsupportedSHA256PairPath) {
        guard let index = supported.firstIndex(of: path) else {
            throw UnsupportedSHA256PairPath(path: path)
        }
        selection.store(index, ordering: .relaxed)
    }

    /// The speed of the path on this machine, in bytes a second. Measured when it is asked for,
    /// which takes some milliseconds.
    package var bytesPerSecond: Int64 {
        let bytes = [UInt8](repeating: 0, count: 256 << 10)
        // The fastest of several, because another thread may have interrupted one.
        let best = (0..<3).map { _ in
            var (first, second) = (SHA256Hasher(), SHA256Hasher())
            return ContinuousClock().measure {
                bytes.withUnsafeBytes {
                    SHA256Hasher.update(&first, &second, with: $0, path: self)
                }
            }
        }.min()
        let seconds = max((best ?? .seconds(1)) / .seconds(1), 1e-6)
        return Int64(Double(bytes.count) / seconds)
    }

    /// True when the processor and the system support the path.
    package var isSupported: Bool { Self.supported.contains(self) }

    /// The path for our code in C; nil where libcrypto does all.
    var instructions: kedge_sha256_pair_path? {
        switch self {
        case .shaNI: KEDGE_SHA256_PAIR_SHA_NI
        case .avx512: KEDGE_SHA256_PAIR_AVX512
        case .avx2: KEDGE_SHA256_PAIR_AVX2
        case .armv8: KEDGE_SHA256_PAIR_ARMV8
        case .libcrypto: nil
        }
    }
}
