internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeHash
internal import KedgeModel

/// `Upload-Checksum` of one body, sent before or after it.
enum TusChecksum {
    /// Value of `Tus-Checksum-Algorithm`.
    static let algorithms = ChecksumAlgorithm.allCases.map(\.rawValue).joined(separator: ",")

    /// The place of the checksum in the request.
    enum Source: Sendable {
        case none
        case field(AppendChecksum)
        /// After the body, in the trailer section.
        case trailer
    }

    /// - Throws: `BAD_REQUEST` for an unsupported algorithm, for a malformed value, and for a
    ///   checksum that comes both before and after the body.
    static func source(of request: Request) throws -> Source {
        let isAnnounced = (request.headers[.trailer] ?? "").split(separator: ",").contains {
            $0.filter { $0 != " " && $0 != "\t" }.lowercased()
                == TusField.checksum.canonicalName
        }
        guard let text = request.headers[TusField.checksum] else {
            return isAnnounced ? .trailer : .none
        }
        guard !isAnnounced else {
            throw EngineError(
                .badRequest, "Upload-Checksum must be a header or a trailer, not both.")
        }
        return .field(try parse(text))
    }

    /// - Throws: `BAD_REQUEST`, also when the announced trailer is missing.
    static func parse(trailer: HTTPFields?) throws -> AppendChecksum {
        guard let text = trailer?[TusField.checksum] else {
            throw EngineError(
                .badRequest, "The announced trailer Upload-Checksum is missing.")
        }
        return try parse(text)
    }

    private static func parse(_ text: String) throws -> AppendChecksum {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, let algorithm = ChecksumAlgorithm(rawValue: String(parts[0])) else {
            throw EngineError(
                .badRequest, "Upload-Checksum must be one of \(algorithms), a space and base64.")
        }
        guard let bytes = Base64.decode(parts[1]), bytes.count == algorithm.byteCount else {
            throw EngineError(
                .badRequest, "Upload-Checksum has no valid \(algorithm.rawValue).")
        }
        return AppendChecksum(algorithm: algorithm, bytes: bytes)
    }
}
