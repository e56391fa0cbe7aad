internal import KedgeEngine
internal import KedgeModel

/// What the name of an object says of it.
enum ObjectOwner: Hashable, Sendable {
    /// It belongs to a session, or has become the blob of one.
    case staging(StagingKey)
    /// It was made to see whether that works.
    case probe
    /// This store gives no such name.
    case unknown
}

extension ObjectKeys {
    /// Whose object it is.
    func owner(of object: String) -> ObjectOwner {
        guard object.hasPrefix(prefix) else { return .unknown }
        let names = object.dropFirst(prefix.count).split(
            separator: "/", omittingEmptySubsequences: false)
        switch (names.first, names.count) {
        case ("objects", 2): return ownerOfObject(names[1])
        case ("pieces", 3): return ownerOfPiece(names[2], in: names[1])
        case ("health", 2) where SessionID.isWellFormed(String(names[1])): return .probe
        default: return .unknown
        }
    }

    /// A session's key, alone or with the digest of the only chunk.
    private func ownerOfObject(_ name: Substring) -> ObjectOwner {
        let parts = name.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        let key = String(parts[0])
        let isNamed =
            parts.count == 1
            || SHA256Digest(hex: String(parts[1])).map { $0.hex == parts[1] } == true
        return isNamed && SessionID.isWellFormed(key) ? .staging(StagingKey(key)) : .unknown
    }

    /// The chunk's index, offset, length and mark.
    private func ownerOfPiece(_ name: Substring, in key: Substring) -> ObjectOwner {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        let key = String(key)
        guard parts.count == 4, parts[..<3].allSatisfy({ WireInteger.parse($0) != nil }),
            SessionID.isWellFormed(key)
        else { return .unknown }
        return .staging(StagingKey(key))
    }
}
