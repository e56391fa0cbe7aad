/// The two header forms that carry a SHA-256 digest.
public enum DigestHeader {
    /// Parses `X-Chunk-Hash: sha256=<64 hex>`, ignoring case.
    public static func parseChunkHash(_ value: some StringProtocol) -> SHA256Digest? {
        let parts = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].lowercased() == "sha256" else { return nil }
        return SHA256Digest(hex: parts[1])
    }

    /// Returns the value of `X-Chunk-Hash`.
    public static func chunkHash(_ digest: SHA256Digest) -> String { "sha256=\(digest.hex)" }

    /// Parses the `sha-256` member of `Content-Digest` or `Repr-Digest` (RFC 9530 section 2).
    ///
    /// Ignores other algorithms. Nil when there is no `sha-256` member, or it is not a byte
    /// sequence of 32 bytes.
    public static func parseRFC9530(_ value: some StringProtocol) -> SHA256Digest? {
        for member in value.split(separator: ",") {
            let pair = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, trim(pair[0]).lowercased() == "sha-256" else { continue }
            let item = trim(pair[1])
            guard item.utf8.count > 2, item.hasPrefix(":"), item.hasSuffix(":") else { return nil }
            guard let bytes = Base64.decode(item.dropFirst().dropLast()) else { return nil }
            return SHA256Digest(bytes: bytes)
        }
        return nil
    }

    /// Returns the value of `Content-Digest` or `Repr-Digest`.
    public static func rfc9530(_ digest: SHA256Digest) -> String {
        "sha-256=:\(Base64.encode(digest.bytes)):"
    }

    private static func trim(_ text: some StringProtocol) -> Substring {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        var slice = Substring(text).drop(while: isBlank)
        while let last = slice.last, isBlank(last) { slice.removeLast() }
        return slice
    }
}
