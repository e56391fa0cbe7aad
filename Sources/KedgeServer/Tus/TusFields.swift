internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// Field names and fixed values of tus 1.0.
enum TusField {
    static let resumable = named("Tus-Resumable")
    static let version = named("Tus-Version")
    static let extensions = named("Tus-Extension")
    static let maxSize = named("Tus-Max-Size")
    static let checksumAlgorithm = named("Tus-Checksum-Algorithm")
    static let length = named("Upload-Length")
    static let deferLength = named("Upload-Defer-Length")
    static let offset = named("Upload-Offset")
    static let metadata = named("Upload-Metadata")
    static let expires = named("Upload-Expires")
    static let checksum = named("Upload-Checksum")
    static let concat = named("Upload-Concat")

    /// The only supported version.
    static let supportedVersion = "1.0.0"
    /// Media type of an append.
    static let mediaType = "application/offset+octet-stream"

    private static func named(_ text: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(text) else { preconditionFailure("\(text) is no name") }
        return name
    }
}

/// Reads the tus fields of a request.
struct TusRequestFields: Sendable {
    let fields: HTTPFields

    /// Whether the body has the media type of an append.
    var isAppend: Bool {
        let type = (fields[.contentType] ?? "").prefix { $0 != ";" }
        return type.filter { $0 != " " && $0 != "\t" }.lowercased() == TusField.mediaType
    }

    /// - Throws: `BAD_REQUEST` when the field is missing or not a number.
    func offset() throws -> Int64 {
        guard let text = fields[TusField.offset], let offset = WireInteger.parse(text) else {
            throw EngineError(.badRequest, "Upload-Offset must be a number of bytes.")
        }
        return offset
    }

    /// The size of the whole upload; nil when it is not declared.
    ///
    /// - Throws: `BAD_REQUEST`; `FILE_TOO_LARGE` for a number above the limit.
    func length(limit: Int64) throws -> Int64? {
        guard let text = fields[TusField.length] else { return nil }
        if let length = WireInteger.parse(text), length <= limit { return length }
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
            throw EngineError(.badRequest, "Upload-Length must be a number of bytes.")
        }
        throw EngineError.tooLarge(maxBytes: limit)
    }

    /// Whether the size is declared later.
    ///
    /// - Throws: `BAD_REQUEST` for any value but 1.
    func defersLength() throws -> Bool {
        guard let text = fields[TusField.deferLength] else { return false }
        guard text == "1" else {
            throw EngineError(.badRequest, "Upload-Defer-Length must be 1.")
        }
        return true
    }
}
