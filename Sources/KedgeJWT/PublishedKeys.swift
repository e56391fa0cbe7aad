/// The document with the keys of an issuer (RFC 7517 section 5).
struct PublishedKeys: Decodable, Sendable {
    /// The keys that can be read. Another key must not make the rest unusable.
    let keys: [PublishedKey]

    private enum CodingKeys: String, CodingKey {
        case keys
    }

    private struct Element: Decodable {
        let key: PublishedKey?

        init(from decoder: any Decoder) throws {
            // A key that cannot be read is left out.
            key = try? PublishedKey(from: decoder)
        }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        keys = try container.decode([Element].self, forKey: .keys).compactMap(\.key)
    }
}
