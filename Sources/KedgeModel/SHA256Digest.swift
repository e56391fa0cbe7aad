/// A SHA-256 digest (FIPS 180-4): 32 bytes, written as 64 lower-case hexadecimal digits.
public struct SHA256Digest: Hashable, Sendable {
    /// Number of bytes in a digest.
    public static let byteCount = 32

    // Four words instead of an array: a digest stays inline in rows and sets of chunks.
    private let words: [4 of UInt64]

    /// Wraps exactly 32 bytes; nil for any other count.
    public init?(bytes: some Collection<UInt8>) {
        self.init(contiguous: Array(bytes))
    }

    /// Not generic, so that it is compiled once and well: long chunk lists come through here.
    private init?(contiguous bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        var words: [4 of UInt64] = [0, 0, 0, 0]
        for position in 0..<Self.byteCount {
            words[position / 8] = words[position / 8] << 8 | UInt64(bytes[position])
        }
        self.words = words
    }

    /// Reads 64 hexadecimal digits in any case; nil for anything else.
    public init?(hex: some StringProtocol) {
        guard hex.utf8.count == 64, let bytes = Hex.decode(hex) else { return nil }
        self.init(bytes: bytes)
    }

    /// The 32 bytes in order.
    public var bytes: [UInt8] {
        (0..<Self.byteCount).map { UInt8(truncatingIfNeeded: words[$0 / 8] >> (56 - 8 * ($0 % 8))) }
    }

    /// 64 lower-case hexadecimal digits.
    public var hex: String { Hex.encode(bytes) }

    /// Written out because `InlineArray` is not `Equatable`.
    public static func == (left: SHA256Digest, right: SHA256Digest) -> Bool {
        (0..<4).allSatisfy { left.words[$0] == right.words[$0] }
    }

    /// Feeds the four words, so that equal digests hash alike.
    public func hash(into hasher: inout Hasher) {
        for index in 0..<4 { hasher.combine(words[index]) }
    }
}

extension SHA256Digest: CustomStringConvertible, Codable {
    /// The same text as ``hex``; a digest is no secret and may be logged.
    public var description: String { hex }

    /// Reads one string of 64 hexadecimal digits in any case.
    ///
    /// - Throws: `DecodingError.dataCorrupted` for other text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let digest = SHA256Digest(hex: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "a SHA-256 digest has 64 hexadecimal digits")
        }
        self = digest
    }

    /// Writes one string of 64 lower-case digits.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(hex)
    }
}
