package import KedgeModel

// The database column of the partial uploads of a final upload.
extension SessionRecord {
    /// The ids, separated by spaces; nil for a session that is not a final upload.
    package var sourceIDsText: String? { sourceIDs?.map(\.text).joined(separator: " ") }

    /// Parses ``sourceIDsText``.
    ///
    /// - Throws: `failed` when the text is not a list of ids.
    package static func sourceIDs(_ text: String?) throws -> [SessionID]? {
        try text?.split(separator: " ").map { name in
            guard let id = SessionID(name) else {
                throw MetadataError.failed("the parts of a session hold an invalid identifier")
            }
            return id
        }
    }
}
