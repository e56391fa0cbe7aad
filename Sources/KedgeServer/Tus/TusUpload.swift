internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// A session as a tus upload. It may have been created through any protocol.
struct TusUpload: Sendable {
    /// Session metadata keys for values that only tus uses.
    enum MetadataKey {
        static let metadata = "kedge.tus.metadata"
        static let concat = "kedge.tus.concat"
    }

    let view: UploadView

    init(_ view: UploadView) { self.view = view }

    /// Whether every byte is durable.
    var isWhole: Bool { view.fileSize == view.offset }

    var isPartial: Bool { view.metadata[MetadataKey.concat] == "partial" }

    /// The partial uploads of a final upload; nil for any other upload.
    var sourceIDs: [SessionID]? { view.sourceIDs }

    /// Whether this is a final upload that is not yet a file.
    var awaitsSources: Bool { sourceIDs != nil && view.state != .completed }

    /// The metadata as sent, or derived from the file of an upload through another protocol.
    var metadataText: String? {
        if let text = view.metadata[MetadataKey.metadata] { return text.isEmpty ? nil : text }
        return view.metadata[MetadataKey.concat] == nil
            ? TusMetadata.text(fileName: view.fileName, mimeType: view.mimeType) : nil
    }

    /// Expiry as an HTTP date; nil once the upload is a file.
    var expiry: String? { view.state == .completed ? nil : view.expiresAt.httpDate }

    /// Fields of every response about an upload: its offset, expiry and file.
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
