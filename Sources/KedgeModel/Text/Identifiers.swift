/// A text identifier made by Kedge: 128 random bits as 32 lowercase hexadecimal digits.
///
/// Identifiers are unguessable and safe in paths, URLs and SQL. Text is checked byte by byte before
/// any lookup.
public protocol RandomIdentifier: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The 32 lowercase hexadecimal digits.
    var text: String { get }
    /// Wraps text that ``isWellFormed(_:)`` accepted.
    init(wellFormed text: String)
}

extension RandomIdentifier {
    /// Returns a new identifier from the system's generator, the only one outside tests.
    public static func random() -> Self {
        // Uses the standard library's calls. A stateless generator of our own would have no bytes,
        // and the thread sanitizer mistakes the address that all of them share for one variable.
        Self(words: (.random(in: .min ... .max), .random(in: .min ... .max)))
    }

    /// Returns a new identifier from the generator.
    public static func random(using generator: inout some RandomNumberGenerator) -> Self {
        Self(words: (generator.next(), generator.next()))
    }

    private init(words: (UInt64, UInt64)) {
        let bytes = [words.0, words.1].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) }
        }
        self.init(wellFormed: Hex.encode(bytes))
    }

    /// Parses an identifier; nil unless it is exactly 32 lowercase hexadecimal digits.
    public init?(_ text: some StringProtocol) {
        guard Self.isWellFormed(text) else { return nil }
        self.init(wellFormed: String(text))
    }

    /// Returns true for exactly 32 lowercase hexadecimal digits.
    public static func isWellFormed(_ text: some StringProtocol) -> Bool {
        let bytes = text.utf8
        return bytes.count == 32
            && bytes.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    /// The 32 digits, for paths, URLs and logs.
    public var description: String { text }

    /// Decodes a string, with the same check as other text from the wire.
    ///
    /// - Throws: `DecodingError.dataCorrupted` unless it is well formed.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let value = Self(text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "an identifier has 32 lower-case hex digits")
        }
        self = value
    }

    /// Encodes the 32 digits as a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

/// The identifier of an upload session on a server.
public struct SessionID: RandomIdentifier {
    /// The 32 lowercase hexadecimal digits.
    public let text: String
    /// Wraps text that is already checked; unchecked text goes through `init?(_:)`.
    public init(wellFormed text: String) { self.text = text }
}

/// The identifier of a finished file on a server (`remoteFileId` on the wire).
public struct FileID: RandomIdentifier {
    /// The 32 lowercase hexadecimal digits.
    public let text: String
    /// Wraps text that is already checked; unchecked text goes through `init?(_:)`.
    public init(wellFormed text: String) { self.text = text }
}

/// The identifier of a transfer in the client's store.
public struct TransferID: RandomIdentifier {
    /// The 32 lowercase hexadecimal digits.
    public let text: String
    /// Wraps text that is already checked; unchecked text goes through `init?(_:)`.
    public init(wellFormed text: String) { self.text = text }
}
