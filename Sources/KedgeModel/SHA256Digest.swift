/// A SHA-256 digest (FIPS 180-4): 32 bytes, written as 64 lowercase hexadecimal digits.
public struct SHA256Digest: Hashable, Sendable {
    /// Number of bytes in a digest.
    public static let byteCount = 32

    // Four words instead of an array, so that a digest is stored inline in rows and sets of chunks.
    private let words: [4 of UInt64]

    /// Wraps exactly 32 bytes; nil for any other count.
    public init?(bytes: some Collection<UInt8>) {
        self.init(contiguous: Array(bytes))
    }

    /// Not generic, so that it is compiled once and optimized: long chunk lists use it.
    private init?(contiguous bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        var words: [4 of UInt64] = [0, 0, 0, 0]
        for position in 0..<Self.byteCount {
            words[position / 8] = words[position / 8] << 8 | UInt64(bytes[position])
        }
        self.words = words
    }

    /// Parses 64 hexadecimal digits in either case; nil for anything else.
    public init?(hex: some StringProtocol) {
        guard hex.utf8.count == 64, let bytes = Hex.decode(hex) else { return nil }
        self.init(bytes: bytes)
    }

    /// The 32 bytes in order.
    public var bytes: [UInt8] {
        (0..<Self.byteCount).map { UInt8(truncatingIfNeeded: words[$0 / 8] >> (56 - 8 * ($0 % 8))) }
    }

    /// The 64 lowercase hexadecimal digits.
    public var hex: String { Hex.encode(bytes) }

    /// Compares the words. Written by hand because `InlineArray` is not `Equatable`.
    public static func == (left: SHA256Digest, right: SHA256Digest) -> Bool {
        (0..<4).allSatisfy { left.words[$0] == right.words[$0] }
    }

    /// Hashes the four words.
    public func hash(into hasher: inout Hasher) {
        for index in 0..<4 { hasher.combine(words[index]) }
    }
}

extension SHA256Digest: CustomStringConvertible, Codable {
    /// The text of ``hex``. A digest is not secret and may be logged.
    public var description: String { hex }

    /// Decodes a string of 64 hexadecimal digits in either case.
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

    /// Encodes a string of 64 lowercase digits.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(hex)
    }
}
