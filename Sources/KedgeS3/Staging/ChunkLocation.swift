/// The location of a complete chunk's bytes, as recorded in its row.
package enum ChunkLocation: Hashable, Sendable {
    /// A part of the session's multipart upload. Its number follows from the chunk's index.
    case part(tag: String)
    /// An object of its own: the file has no other chunk.
    case object(tag: String)

    /// Parses the recorded text; nil for a text that this store has not written.
    package init?(_ text: String?) {
        guard let text, let colon = text.firstIndex(of: ":") else { return nil }
        let tag = String(text[text.index(after: colon)...])
        switch text[..<colon] {
        case "part": self = .part(tag: tag)
        case "object": self = .object(tag: tag)
        default: return nil
        }
    }

    package var text: String {
        switch self {
        case .part(let tag): "part:\(tag)"
        case .object(let tag): "object:\(tag)"
        }
    }
}

/// The recorded state of a staging area, besides its chunks.
package enum StagingState: Hashable, Sendable {
    /// The multipart upload that collects the chunks.
    case upload(UploadReference)
    /// The object that the chunks were assembled into.
    case object(key: String)

    /// Parses the recorded text; nil for a text that this store has not written.
    package init?(_ text: String?) {
        guard let text, let colon = text.firstIndex(of: ":") else { return nil }
        let rest = String(text[text.index(after: colon)...])
        switch text[..<colon] {
        case "upload": self = .upload(UploadReference(id: rest, hasChecksums: false))
        case "upload+sha256": self = .upload(UploadReference(id: rest, hasChecksums: true))
        case "object": self = .object(key: rest)
        default: return nil
        }
    }

    package var text: String {
        switch self {
        case .upload(let upload):
            "\(upload.hasChecksums ? "upload+sha256" : "upload"):\(upload.id)"
        case .object(let key): "object:\(key)"
        }
    }
}
