internal import KedgeModel

// How garbage is written in a row of a database; the schema of each has the same columns.
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
    /// - Throws: ``MetadataError/failed(_:)`` when they name nothing.
    package init(kind: String, key: String, state: String?) throws(MetadataError) {
        if kind == "staging", SessionID.isWellFormed(key) {
            self = .staging(StagingKey(key), state: state)
        } else if kind == "blob", let digest = SHA256Digest(hex: key) {
            self = .blob(digest)
        } else {
            throw .failed("a garbage row names nothing")
        }
    }
}
