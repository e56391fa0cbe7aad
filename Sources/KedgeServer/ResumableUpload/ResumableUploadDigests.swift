internal import HTTPTypes
internal import KedgeEngine
internal import KedgeHash
internal import KedgeModel

/// Digests that come with uploads of any form (RFC 9530). The drafts say nothing on them any more, so what follows
/// from them is a rule of this service.
enum ResumableUploadDigests {
    /// What the body of this request must have; the request counts as a whole or not at all then.
    ///
    /// - Throws: `BAD_REQUEST` when the field is there and has nothing that is checked here: the client
    ///   would believe its bytes verified.
    static func content(_ headers: HTTPFields) throws -> AppendChecksum? {
        guard let value = headers[.contentDigest] else { return nil }
        let members = StructuredField.dictionary(value) ?? [:]
        // SHA-256 first, because the bytes are hashed with it in any case.
        let known: [(key: String, algorithm: ChecksumAlgorithm, byteCount: Int)] = [
            ("sha-256", .sha256, 32), ("sha-512", .sha512, 64),
        ]
        for (key, algorithm, byteCount) in known {
            if case .bytes(let bytes) = members[key], bytes.count == byteCount {
                return AppendChecksum(algorithm: algorithm, bytes: bytes)
            }
        }
        throw EngineError(.badRequest, "Content-Digest holds neither sha-256 nor sha-512.")
    }

    /// What the whole file must have.
    ///
    /// - Throws: `BAD_REQUEST`, as ``content(_:)`` does.
    static func representation(_ headers: HTTPFields) throws -> SHA256Digest? {
        guard let value = headers[.reprDigest] else { return nil }
        guard case .bytes(let bytes) = StructuredField.dictionary(value)?["sha-256"],
            let digest = SHA256Digest(bytes: bytes)
        else {
            throw EngineError(.badRequest, "Repr-Digest holds no sha-256.")
        }
        return digest
    }

    /// What a body must have that is the whole file, so that both fields mean the same. SHA-256 is left to the
    /// file, which has one in any case.
    ///
    /// - Throws: `BAD_REQUEST`, also when the fields disagree.
    static func whole(
        _ headers: HTTPFields
    ) throws -> (file: SHA256Digest?, body: AppendChecksum?) {
        let file = try representation(headers)
        guard let body = try content(headers) else { return (file, nil) }
        guard body.algorithm == .sha256 else { return (file, body) }
        guard file == nil || file?.bytes == body.bytes else {
            throw EngineError(.badRequest, "Repr-Digest and Content-Digest disagree.")
        }
        return (SHA256Digest(bytes: body.bytes), nil)
    }
}
