/// Where the bytes of a whole chunk are, as its row says.
enum ChunkLocation: Hashable, Sendable {
    /// In a part of the session's multipart upload, whose number follows from the chunk's index.
    case part(tag: String)
    /// In an object of their own: the file has no other chunk.
    case object(tag: String)

    /// Nil for a text that this store has not made.
    init?(_ text: String?) {
        guard let text, let colon = text.firstIndex(of: ":") else { return nil }
        let tag = String(text[text.index(after: colon)...])
        switch text[..<colon] {
        case "part": self = .part(tag: tag)
        case "object": self = .object(tag: tag)
        default: return nil
        }
    }

    var text: String {
        switch self {
        case .part(let tag): "part:\(tag)"
        case .object(let tag): "object:\(tag)"
        }
    }
}

/// What is recorded of a staging area beside its chunks.
enum StagingState: Hashable, Sendable {
    /// The multipart upload that collects the chunks.
    case upload(UploadReference)
    /// The object that they have become.
    case object(key: String)

    /// Nil for a text that this store has not made.
    init?(_ text: String?) {
        guard let text, let colon = text.firstIndex(of: ":") else { return nil }
        let rest = String(text[text.index(after: colon)...])
        switch text[..<colon] {
        case "upload": self = .upload(UploadReference(id: rest, hasChecksums: false))
        case "upload+sha256": self = .upload(UploadReference(id: rest, hasChecksums: true))
        case "object": self = .object(key: rest)
        default: return nil
        }
    }

    var text: String {
        switch self {
        case .upload(let upload):
            "\(upload.hasChecksums ? "upload+sha256" : "upload"):\(upload.id)"
        case .object(let key): "object:\(key)"
        }
    }
}
