internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// A session as tus sees it; it may have been begun through any door.
struct TusUpload: Sendable {
    /// Keys of what only tus asks for again, in a session's metadata.
    enum MetadataKey {
        static let metadata = "kedge.tus.metadata"
        static let concat = "kedge.tus.concat"
    }

    let view: UploadView

    init(_ view: UploadView) { self.view = view }

    /// True when every byte is durable.
    var isWhole: Bool { view.fileSize == view.offset }

    var isPartial: Bool { view.metadata[MetadataKey.concat] == "partial" }

    /// The parts whose bytes this upload is; nil for one that has bytes of its own.
    var parts: [SessionID]? { view.parts }

    /// True while it is no file, and is to be made of its parts.
    var awaitsParts: Bool { parts != nil && view.state != .completed }

    /// As it was sent; what is known of the file when it came through another door.
    var metadataText: String? {
        if let text = view.metadata[MetadataKey.metadata] { return text.isEmpty ? nil : text }
        return view.metadata[MetadataKey.concat] == nil
            ? TusMetadata.text(fileName: view.fileName, mimeType: view.mimeType) : nil
    }

    /// When the upload ends unless there is activity; nil once it is a file.
    var expiry: String? { view.state == .completed ? nil : view.expiresAt.httpDate }

    /// What is told of an upload in each answer about it: how far it is, and what file it has become.
    var progressFields: HTTPFields {
        var fields: HTTPFields = [TusField.offset: String(view.offset)]
        fields[TusField.expires] = expiry
        if view.state == .completed, let file = view.fileID, let digest = view.finalDigest {
            fields[.contentLocation] = "/files/\(file)"
            fields[.reprDigest] = DigestHeader.rfc9530(digest)
        }
        return fields
    }
}
