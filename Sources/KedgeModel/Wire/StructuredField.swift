/// Reads structured fields (RFC 9651) strictly: items and dictionaries of items.
///
/// Inner lists, dates and display strings count as malformed, because no field that the service
/// reads may contain one. A reader that must ignore unknown members accepts them.
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
        /// An inner list, a date or a display string. Its value is checked and discarded.
        case other
    }

    /// The item of a field; nil for anything else, including several items.
    ///
    /// - Parameter acceptsEveryType: Whether parameters may have values of any type.
    package static func item(_ text: String, acceptsEveryType: Bool = false) -> Item? {
        var parser = StructuredFieldParser(text, acceptsEveryType: acceptsEveryType)
        guard let item = parser.item(), parser.isAtEnd() else { return nil }
        return item
    }

    /// The value of a field that holds a Boolean.
    ///
    /// - Parameter acceptsEveryType: Whether parameters may have values of any type.
    package static func boolean(_ text: String, acceptsEveryType: Bool = false) -> Bool? {
        guard case .boolean(let value) = item(text, acceptsEveryType: acceptsEveryType) else {
            return nil
        }
        return value
    }

    /// The value of a field that holds an Integer of zero or more.
    package static func count(_ text: String) -> Int64? {
        if case .integer(let value) = item(text), value >= 0 { value } else { nil }
    }

    /// The members of a dictionary; nil for a malformed field. The last value of a repeated key
    /// counts (RFC 9651 section 4.2.2).
    ///
    /// - Parameter acceptsEveryType: Whether members and parameters may have values of any type.
    package static func dictionary(
        _ text: String, acceptsEveryType: Bool = false
    ) -> [String: Item]? {
        var parser = StructuredFieldParser(text, acceptsEveryType: acceptsEveryType)
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
