/// Entity tags in conditional headers (RFC 9110 section 13.1).
package enum EntityTags {
    /// True when `If-Match` lets the request through: strong comparison, weak tags never match.
    package static func ifMatch(_ value: String, allows etag: String) -> Bool {
        value.isBareStar || list(value).contains(etag)
    }

    /// True when `If-None-Match` names the file: weak comparison.
    package static func ifNoneMatch(_ value: String, names etag: String) -> Bool {
        value.isBareStar || list(value).contains { $0 == etag || $0 == "W/" + etag }
    }

    /// True when `If-Range` holds: one strong tag, equal. Dates are never equal, for a file has no
    /// validator but its tag.
    package static func ifRange(_ value: String, names etag: String) -> Bool {
        list(value) == [etag]
    }

    /// The tags of a list; quoted text may hold commas, so this is no split.
    static func list(_ value: String) -> [String] {
        var tags: [String] = []
        var current = ""
        var isQuoted = false
        for character in value {
            if character == "\"" { isQuoted.toggle() }
            if character == ",", !isQuoted {
                tags.append(current)
                current = ""
            } else if isQuoted || !(character == " " || character == "\t") {
                current.append(character)
            }
        }
        tags.append(current)
        return tags.filter { !$0.isEmpty }
    }
}

extension String {
    fileprivate var isBareStar: Bool { EntityTags.list(self) == ["*"] }
}
