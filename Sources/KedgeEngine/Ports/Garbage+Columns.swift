internal import KedgeModel

// The database columns of garbage, equal in the schemas of all databases.
extension Garbage {
    /// The row's kind.
    package var kind: String {
        switch self {
        case .staging: "staging"
        case .blob: "blob"
        }
    }

    /// The row's key.
    package var key: String {
        switch self {
        case .staging(let key, _): key.text
        case .blob(let digest): digest.hex
        }
    }

    /// The row's state.
    package var state: String? {
        switch self {
        case .staging(_, let state): state
        case .blob: nil
        }
    }

    /// Reads the columns of a row.
    ///
    /// - Throws: ``MetadataError/failed(_:)`` when they are not valid.
    package init(kind: String, key: String, state: String?) throws(MetadataError) {
        if kind == "staging", SessionID.isWellFormed(key) {
            self = .staging(StagingKey(key), state: state)
        } else if kind == "blob", let digest = SHA256Digest(hex: key) {
            self = .blob(digest)
        } else {
            throw .failed("a garbage row refers to nothing")
        }
    }
}
