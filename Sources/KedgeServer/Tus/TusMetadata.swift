internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// `Upload-Metadata`: pairs of a key and a base64 value.
struct TusMetadata: Hashable, Sendable {
    /// Name of a file whose upload names none.
    static let defaultFileName = "upload"
    static let maxByteCount = 8 << 10

    /// The text as the client sent it. `HEAD` returns it unchanged.
    let text: String
    private let values: [String: [UInt8]]

    /// - Throws: `BAD_REQUEST` for an empty or repeated key, for a value that is not base64, and
    ///   for text that is too long or not UTF-8.
    init(_ text: String) throws {
        guard text.utf8.count <= Self.maxByteCount else {
            throw EngineError(
                .badRequest, "Upload-Metadata is larger than \(Self.maxByteCount) bytes.")
        }
        // Invalid UTF-8 has become this character before this point.
        guard !text.unicodeScalars.contains("\u{FFFD}") else {
            throw EngineError(.badRequest, "Upload-Metadata is not UTF-8.")
        }
        self.text = text
        var values: [String: [UInt8]] = [:]
        // Clients without metadata may send an empty field.
        let pairs =
            text.allSatisfy({ $0.isBlank })
            ? []
            : text.split(
                separator: ",", omittingEmptySubsequences: false)
        for pair in pairs {
            let parts = Self.trim(pair).split(
                separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            guard let key = parts.first, !key.isEmpty else {
                throw EngineError(.badRequest, "Upload-Metadata has an empty key.")
            }
            guard let value = Base64.decode(parts.count > 1 ? parts[1] : "") else {
                throw EngineError(.badRequest, "A value of Upload-Metadata is not base64.")
            }
            guard values.updateValue(value, forKey: String(key)) == nil else {
                throw EngineError(.badRequest, "Upload-Metadata has a duplicate key.")
            }
        }
        self.values = values
    }

    /// The metadata of a file that was uploaded through another protocol.
    static func text(fileName: String, mimeType: String?) -> String {
        let name = "filename \(Base64.encode(Array(fileName.utf8)))"
        return mimeType.map { "\(name),filetype \(Base64.encode(Array($0.utf8)))" } ?? name
    }

    /// A safe file name from the client's metadata, or a default without one.
    var fileName: String { declaredFileName ?? Self.defaultFileName }

    /// A safe file name from the client's metadata; nil without one.
    var declaredFileName: String? {
        guard let name = first(of: ["filename", "name"]), !name.isEmpty else { return nil }
        return FileName.sanitized(name)
    }

    /// The path of the file below a folder; nil without one, and for text that is none: tus clients
    /// may mean anything by this key.
    var path: String? {
        first(of: [FilePath.metadataKey]).flatMap { FilePath.isStorable($0) ? $0 : nil }
    }

    /// The modification time of the file; nil without one, and for text that is none.
    var modified: FileTime? { first(of: [FileTime.metadataKey]).flatMap { FileTime($0) } }

    /// The media type; nil when it is not valid. Browsers do not know the type of every file, and
    /// pages then send arbitrary text.
    var mimeType: String? { first(of: ["filetype", "type"]).flatMap { Self.mediaType($0) } }

    private func first(of keys: [String]) -> String? {
        for key in keys {
            if let value = values[key], !value.isEmpty,
                let text = String(validating: value, as: UTF8.self)
            {
                return text
            }
        }
        return nil
    }

    private static func mediaType(_ text: String) -> String? {
        let essence = text.prefix { $0 != ";" }
        let parts = essence.split(separator: "/", omittingEmptySubsequences: false)
        let isType =
            text.utf8.count <= 255 && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            && parts.count == 2 && parts.allSatisfy { HTTPField.Name(String($0)) != nil }
        return isType ? text : nil
    }

    private static func trim(_ text: Substring) -> Substring {
        var slice = text.drop { $0.isBlank }
        while let last = slice.last, last.isBlank { slice.removeLast() }
        return slice
    }
}

extension Character {
    fileprivate var isBlank: Bool { self == " " || self == "\t" }
}
