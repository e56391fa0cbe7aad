/// The value of a member of a token's header or claims.
enum ClaimValue: Hashable, Sendable {
    case text(String)
    case flag(Bool)
    case number(Double)
    /// A list of texts only.
    case list([String])
    /// A value that no rule reads.
    case other

    /// The text, or the texts of the list; empty for other values.
    var texts: [String] {
        switch self {
        case .text(let text): [text]
        case .list(let texts): texts
        case .flag, .number, .other: []
        }
    }
}

extension ClaimValue: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // JSON has no other way to ask for the type of a value.
        if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let texts = try? container.decode([String].self) {
            self = .list(texts)
        } else {
            self = .other
        }
    }
}
