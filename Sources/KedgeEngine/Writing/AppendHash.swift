internal import KedgeHash
internal import KedgeModel

/// The checksums of an append's whole body, across chunks.
struct AppendHash: Sendable {
    /// Kept apart from the others: computed together with the chunk's own SHA-256, it costs almost
    /// nothing.
    private var sha256: SHA256Hasher?
    private var others: [ChecksumHasher]

    /// Returns nil when the append has no checksum and will get none.
    init?(_ put: AppendPut) {
        guard put.countsAtItsEnd else { return nil }
        let algorithms =
            put.lateChecksum != nil
            ? Set(ChecksumAlgorithm.allCases) : Set([put.checksum?.algorithm])
        sha256 = algorithms.contains(.sha256) ? SHA256Hasher() : nil
        others = algorithms.compactMap(\.self).filter { $0 != .sha256 }.map { ChecksumHasher($0) }
    }

    /// Updates the checksums and the chunk's hash. Blocks the calling thread.
    mutating func update(_ bytes: UnsafeRawBufferPointer, beside chunk: inout SHA256Hasher) {
        if var hasher = sha256 {
            SHA256Hasher.update(&chunk, &hasher, with: bytes)
            sha256 = hasher
        } else {
            chunk.update(bytes)
        }
        for index in others.indices { others[index].update(bytes) }
    }

    /// Compares the bytes seen so far with a checksum.
    ///
    /// - Throws: `CHUNK_HASH_MISMATCH`.
    func require(_ expected: AppendChecksum) throws {
        let actual = checksum(expected.algorithm)
        guard actual == expected.bytes else {
            throw EngineError.wrongChecksum(expected, actual: actual)
        }
    }

    private func checksum(_ algorithm: ChecksumAlgorithm) -> [UInt8]? {
        algorithm == .sha256
            ? sha256?.digest().bytes
            : others.first { $0.algorithm == algorithm }?.checksum()
    }
}

extension EngineError {
    /// Returns the error for the bytes of an append that do not match their checksum.
    fileprivate static func wrongChecksum(
        _ expected: AppendChecksum, actual: [UInt8]?
    ) -> EngineError {
        var error = EngineError(
            .chunkHashMismatch,
            "The bytes do not match the \(expected.algorithm.rawValue) checksum.")
        if expected.algorithm == .sha256 {
            error.expectedDigest = SHA256Digest(bytes: expected.bytes)
            error.actualDigest = actual.flatMap { SHA256Digest(bytes: $0) }
        }
        return error
    }
}
