package import KedgeModel

// How the parts of a session are written in a row of a database.
extension SessionRecord {
    /// The ids with spaces between them; nil for a session without parts.
    package var partsText: String? { parts?.map(\.text).joined(separator: " ") }

    /// Reads ``partsText``.
    ///
    /// - Throws: `failed` for what is no list of ids.
    package static func parts(_ text: String?) throws -> [SessionID]? {
        try text?.split(separator: " ").map { name in
            guard let id = SessionID(name) else {
                throw MetadataError.failed("a part of a session has no identifier")
            }
            return id
        }
    }
}
