internal import HTTPTypes
package import KedgeModel

/// Metadata that a server reports about a file before its download.
package struct RemoteFile: Sendable, Equatable {
    package var url: String
    /// Size in bytes; nil when the server does not report it.
    package var byteCount: Int64?
    /// Names the version of the file.
    package var validator = RangeValidator.weak("")
    package var sha256: SHA256Digest?
    package var acceptsRanges: Bool
    /// Chunk size and digests, if the server offers them.
    package var chunkSize: Int64?
    package var chunkDigests: [SHA256Digest]?
    /// Time of the last change to its content, as the uploader or the server reports it.
    package var modified: FileTime?

    /// Whether the file can be fetched in ranges and resumed later, whatever else is known.
    package var isResumable: Bool { hasRanges && !validator.isWeak }

    /// Whether ranges of the file can be requested.
    var hasRanges: Bool { acceptsRanges && byteCount != nil }

    /// Returns the time in `Last-Modified`; nil for a missing or malformed one.
    static func modified(_ fields: HTTPFields) -> FileTime? {
        fields[.lastModified].flatMap { Timestamp(httpDate: $0) }.flatMap { FileTime($0) }
    }

    /// Returns a strong entity tag in quotes; nil for a weak, missing or malformed one.
    package static func strongETag(_ value: String?) -> String? {
        guard let value, value.utf8.count >= 2, value.hasPrefix("\""), value.hasSuffix("\""),
            // RFC 9110 section 8.8.3: no blanks and no quotes inside. Two tags are no tag.
            value.utf8.dropFirst().dropLast().allSatisfy({
                $0 == 0x21 || (0x23...0x7E).contains($0) || $0 >= 0x80
            })
        else { return nil }
        return value
    }
}
