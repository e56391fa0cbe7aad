internal import KedgeEngine
internal import KedgeModel

/// `Upload-Concat`: whether an upload is a partial or a final one.
enum TusConcatenation: Hashable, Sendable {
    case partial
    /// The partial uploads in the order of their bytes.
    case final([SessionID])

    /// - Parameter maxSourceCount: Maximum number of partial uploads of a final upload.
    /// - Throws: `BAD_REQUEST`.
    init(_ text: String, maxSourceCount: Int) throws {
        if text == "partial" {
            self = .partial
            return
        }
        guard text.hasPrefix("final;") else {
            throw EngineError(
                .badRequest, "Upload-Concat must be \"partial\", or \"final;\" and uploads.")
        }
        let sourceIDs = try text.dropFirst("final;".count).split(separator: " ").map { address in
            // Only the id counts, because proxies may change the address before it.
            let name = address.split(separator: "/").last ?? ""
            guard let id = SessionID(name) else {
                throw EngineError(.badRequest, "Upload-Concat has an invalid address.")
            }
            return id
        }
        guard !sourceIDs.isEmpty else {
            throw EngineError(.badRequest, "Upload-Concat has no uploads.")
        }
        guard sourceIDs.count <= maxSourceCount else {
            throw EngineError(
                .badRequest, "Upload-Concat has more than \(maxSourceCount) uploads.")
        }
        guard Set(sourceIDs).count == sourceIDs.count else {
            throw EngineError(.badRequest, "Upload-Concat has an upload twice.")
        }
        self = .final(sourceIDs)
    }
}
