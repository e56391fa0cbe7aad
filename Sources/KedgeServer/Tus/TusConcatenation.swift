internal import KedgeEngine
internal import KedgeModel

/// `Upload-Concat`: whether an upload is a part of another, or is made of parts.
enum TusConcatenation: Hashable, Sendable {
    case partial
    /// The parts in the order of their bytes.
    case final([SessionID])

    /// - Parameter maxPartCount: Most parts that an upload may have.
    /// - Throws: `BAD_REQUEST`.
    init(_ text: String, maxPartCount: Int) throws {
        if text == "partial" {
            self = .partial
            return
        }
        guard text.hasPrefix("final;") else {
            throw EngineError(.badRequest, "Upload-Concat is partial, or final; and uploads.")
        }
        let parts = try text.dropFirst("final;".count).split(separator: " ").map { address in
            // What is before the id, if anything, is a matter of proxies.
            let name = address.split(separator: "/").last ?? ""
            guard let id = SessionID(name) else {
                throw EngineError(.badRequest, "Upload-Concat names what is no upload.")
            }
            return id
        }
        guard !parts.isEmpty else {
            throw EngineError(.badRequest, "Upload-Concat names no uploads.")
        }
        guard parts.count <= maxPartCount else {
            throw EngineError(
                .badRequest, "Upload-Concat names more than \(maxPartCount) uploads.")
        }
        guard Set(parts).count == parts.count else {
            throw EngineError(.badRequest, "Upload-Concat names an upload twice.")
        }
        self = .final(parts)
    }
}
