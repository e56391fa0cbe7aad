/// Any name of a member of a JSON object.
private struct AnyName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
}

extension Decoder {
    /// Refuses an object with other members than these.
    ///
    /// For requests in which a mistyped member must not be ignored: a token without its expiry, or
    /// an owner without a limit.
    ///
    /// - Throws: `DecodingError` that names the member.
    func requireMembers(among known: Set<String>) throws {
        let members = try container(keyedBy: AnyName.self).allKeys
        guard let unknown = members.first(where: { !known.contains($0.stringValue) }) else {
            return
        }
        throw DecodingError.dataCorrupted(
            DecodingError.Context(
                codingPath: codingPath + [unknown], debugDescription: "the member is unknown"))
    }
}
