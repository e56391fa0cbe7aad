internal import HTTPTypes
internal import KedgeEngine
internal import KedgeHash
internal import KedgeModel

/// Digests of uploads in any protocol version (RFC 9530). The drafts no longer define their effect,
/// so it is a rule of this service.
enum ResumableUploadDigests {
    /// The checksum of this request's body. With it, the body counts as a whole or not at all.
    ///
    /// - Throws: `BAD_REQUEST` when the field has no supported digest, because the client would
    ///   believe its bytes verified.
    static func content(_ headers: HTTPFields) throws -> AppendChecksum? {
        guard let value = headers[.contentDigest] else { return nil }
        let members = StructuredField.dictionary(value) ?? [:]
        // SHA-256 comes first, because the bytes are hashed with it in any case.
        let known: [(key: String, algorithm: ChecksumAlgorithm, byteCount: Int)] = [
            ("sha-256", .sha256, 32), ("sha-512", .sha512, 64),
        ]
        for (key, algorithm, byteCount) in known {
            if case .bytes(let bytes) = members[key], bytes.count == byteCount {
                return AppendChecksum(algorithm: algorithm, bytes: bytes)
            }
        }
        throw EngineError(.badRequest, "Content-Digest has neither sha-256 nor sha-512.")
    }

    /// The digest of the whole file.
    ///
    /// - Throws: `BAD_REQUEST`, as ``content(_:)`` does.
    static func representation(_ headers: HTTPFields) throws -> SHA256Digest? {
        guard let value = headers[.reprDigest] else { return nil }
        guard case .bytes(let bytes) = StructuredField.dictionary(value)?["sha-256"],
            let digest = SHA256Digest(bytes: bytes)
        else {
            throw EngineError(.badRequest, "Repr-Digest has no valid sha-256.")
        }
        return digest
    }

    /// The digests of a body that is the whole file. Both fields then cover the same bytes, and a
    /// SHA-256 is returned for the file, which has one in any case.
    ///
    /// - Throws: `BAD_REQUEST`, also when the fields disagree.
    static func whole(
        _ headers: HTTPFields
    ) throws -> (file: SHA256Digest?, body: AppendChecksum?) {
        let file = try representation(headers)
        guard let body = try content(headers) else { return (file, nil) }
        guard body.algorithm == .sha256 else { return (file, body) }
        guard file == nil || file?.bytes == body.bytes else {
            throw EngineError(.badRequest, "Repr-Digest and Content-Digest differ.")
        }
        return (SHA256Digest(bytes: body.bytes), nil)
    }
}
