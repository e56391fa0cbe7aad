/// Reads structured fields (RFC 9651) strictly: items and dictionaries of items.
///
/// Inner lists, dates and display strings are not supported. No field that is read here may contain
/// one, so they count as malformed.
package enum StructuredField {
    /// A bare item. Parameters are checked and discarded.
    package enum Item: Hashable, Sendable {
        case boolean(Bool)
        case integer(Int64)
        /// As it is written.
        case decimal(String)
        case string(String)
        case token(String)
        case bytes([UInt8])
    }

    /// The item of a field; nil for anything else, including several items.
    package static func item(_ text: String) -> Item? {
        var parser = StructuredFieldParser(text)
        guard let item = parser.item(), parser.isAtEnd() else { return nil }
        return item
    }

    /// The value of a field that holds a Boolean.
    package static func boolean(_ text: String) -> Bool? {
        if case .boolean(let value) = item(text) { value } else { nil }
    }

    /// The value of a field that holds an Integer of zero or more.
    package static func count(_ text: String) -> Int64? {
        if case .integer(let value) = item(text), value >= 0 { value } else { nil }
    }

    /// The members of a dictionary; nil for a malformed field. The last value of a repeated key
    /// counts (RFC 9651 section 4.2.2).
    package static func dictionary(_ text: String) -> [String: Item]? {
        var parser = StructuredFieldParser(text)
        var members: [String: Item] = [:]
        parser.skipSpaces()
        guard !parser.isDone else { return members }
        while true {
            guard let key = parser.key(), let item = parser.memberValue() else { return nil }
            members[key] = item
            parser.skipBlanks()
            guard !parser.isDone else { return members }
            guard parser.take(",") else { return nil }
            parser.skipBlanks()
            // A trailing comma is malformed.
            guard !parser.isDone else { return nil }
        }
    }
}
