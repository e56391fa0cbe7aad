internal import KedgeEngine
internal import KedgeModel

/// `Upload-Concat`: whether an upload is a partial or a final one.
enum TusConcatenation: Hashable, Sendable {
    case partial
    /// The partial uploads in the order of their bytes.
    case final([Source])

    /// A partial upload as a final one names it.
    struct Source: Hashable, Sendable {
        let id: SessionID
        /// The address without its query, which `HEAD` returns.
        let address: String
        /// The link in the query; nil for none.
        let link: String?
    }

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
        let sources = try text.dropFirst("final;".count).split(separator: " ").map { text in
            let (address, link) = LinkText.divided(text)
            // Only the id counts, because proxies may change the address before it.
            let name = address.split(separator: "/").last ?? ""
            guard let id = SessionID(name) else {
                throw EngineError(.badRequest, "Upload-Concat has an invalid address.")
            }
            return Source(id: id, address: address, link: link)
        }
        guard !sources.isEmpty else {
            throw EngineError(.badRequest, "Upload-Concat has no uploads.")
        }
        guard sources.count <= maxSourceCount else {
            throw EngineError(
                .badRequest, "Upload-Concat has more than \(maxSourceCount) uploads.")
        }
        guard Set(sources.map(\.id)).count == sources.count else {
            throw EngineError(.badRequest, "Upload-Concat has an upload twice.")
        }
        self = .final(sources)
    }

    /// The value of the field without any link, to be stored and returned.
    var text: String {
        switch self {
        case .partial: "partial"
        case .final(let sources): "final;" + sources.map(\.address).joined(separator: " ")
        }
    }
}
