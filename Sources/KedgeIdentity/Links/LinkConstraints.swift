package import KedgeModel

/// The limits of the upload that a `put` link creates. An empty list and nil do not limit.
package struct LinkConstraints: Hashable, Sendable {
    /// Maximum size of the file.
    package var maxByteCount: Int64?
    /// Minimum size of the file.
    package var minByteCount: Int64?
    /// The exact size of the file.
    package var byteCount: Int64?
    /// Media types such as `image/png`, and groups such as `video/*`.
    package var mediaTypes: [String] = []
    /// Extensions of the file's name such as `png` or `tar.gz`, in any case.
    package var fileExtensions: [String] = []
    /// The exact name of the file, compared by bytes.
    package var fileName: String?
    /// The digest of the file.
    package var digest: SHA256Digest?
    /// Metadata of the upload that its client cannot set otherwise.
    package var metadata: [String: String] = [:]
    /// Number of sessions that the link creates, at least 1.
    package var uses = 1
    /// Time after its creation for which the link of the session is valid; nil for that of the
    /// service.
    package var sessionLifetimeSeconds: Int64?
    /// Origins of pages that may use the link; empty for pages of the service alone.
    package var origins: [String] = []
    /// Networks from which the link may be used; empty for all.
    package var networks: [String] = []

    package init() {}
}

extension LinkConstraints {
    /// The size that no upload by this link exceeds, also one that does not declare a size.
    package var byteCountLimit: Int64? { [maxByteCount, byteCount].compactMap { $0 }.min() }

    /// Returns the first limit that an upload breaks; nil if it keeps all.
    ///
    /// An upload that declares no size, name or digest breaks none about them. The caller gives it
    /// ``fileName``, ``digest`` and ``byteCountLimit``, and checks the size once it is known. An
    /// upload without a media type breaks every limit on types.
    package func check(
        fileName: String?, byteCount: Int64?, mimeType: String?, digest: SHA256Digest?
    ) -> LinkViolation? {
        if let byteCount, let violation = checkSize(byteCount) { return violation }
        if !mediaTypes.isEmpty {
            guard let mimeType, mediaTypes.contains(where: { Self.mediaType(mimeType, fits: $0) })
            else {
                return .wrongMediaType
            }
        }
        if let required = self.fileName, let fileName, Array(fileName.utf8) != Array(required.utf8)
        {
            return .wrongName
        }
        if !fileExtensions.isEmpty {
            guard let name = fileName ?? self.fileName,
                fileExtensions.contains(where: { Self.name(name, has: $0) })
            else { return .wrongExtension }
        }
        if let required = self.digest, let digest, digest != required { return .wrongDigest }
        return nil
    }

    /// Returns the limit on sizes that this size breaks; nil if it keeps all.
    package func checkSize(_ size: Int64) -> LinkViolation? {
        if let maxByteCount, size > maxByteCount { return .tooLarge }
        if let minByteCount, size < minByteCount { return .tooSmall }
        if let byteCount, size != byteCount { return .wrongSize }
        return nil
    }

    /// Returns the client's metadata with that of the link over it.
    package func mergedMetadata(over client: [String: String]) -> [String: String] {
        client.merging(metadata) { _, ofLink in ofLink }
    }

    /// Whether the media type, with or without parameters, is the pattern's or in its group.
    private static func mediaType(_ text: String, fits pattern: String) -> Bool {
        let bytes = lowercased(text).prefix { $0 != UInt8(ascii: ";") }
        var essence = bytes.drop { isSpace($0) }
        while let last = essence.last, isSpace(last) { essence.removeLast() }
        let pattern = lowercased(pattern)
        if pattern.elementsEqual("*/*".utf8) { return essence.contains(UInt8(ascii: "/")) }
        guard pattern.suffix(2).elementsEqual("/*".utf8) else {
            return essence.elementsEqual(pattern)
        }
        let group = pattern.dropLast()
        return essence.count > group.count && essence.starts(with: group)
    }

    /// Whether the name has the extension, which may begin with a point, and a part before it.
    private static func name(_ name: String, has fileExtension: String) -> Bool {
        let point = UInt8(ascii: ".")
        let suffix = [point] + lowercased(fileExtension).drop { $0 == point }
        let bytes = lowercased(name)
        return bytes.count > suffix.count && bytes.suffix(suffix.count).elementsEqual(suffix)
    }

    /// Changes ASCII letters only. Other letters have lower cases that are ASCII letters.
    private static func lowercased(_ text: String) -> [UInt8] {
        text.utf8.map { byte in
            (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }
}
