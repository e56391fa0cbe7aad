package import KedgeModel

/// What a server says about a file before it is downloaded.
package struct RemoteFile: Sendable, Equatable {
    package var url: String
    /// Size in bytes; nil when the server does not say.
    package var byteCount: Int64?
    /// Names the version of the file.
    package var validator = RangeValidator.weak("")
    package var sha256: SHA256Digest?
    package var acceptsRanges: Bool
    /// Chunk size and digests, where the server offers them (R93).
    package var chunkSize: Int64?
    package var chunkDigests: [SHA256Digest]?

    /// True when the file can be fetched in pieces and gone on with later, whatever else is known of it.
    package var isResumable: Bool { hasRanges && !validator.isWeak }

    /// True when parts of the file can be asked for.
    var hasRanges: Bool { acceptsRanges && byteCount != nil }

    /// A strong entity tag in quotes; nil for a weak, missing or malformed one.
    static func strongETag(_ value: String?) -> String? {
        guard let value, value.utf8.count >= 2, value.hasPrefix("\""), value.hasSuffix("\""),
            // RFC 9110 section 8.8.3: neither blanks nor quotes inside. Two tags are no tag.
            value.utf8.dropFirst().dropLast().allSatisfy({
                $0 == 0x21 || (0x23...0x7E).contains($0) || $0 >= 0x80
            })
        else { return nil }
        return value
    }
}
