/// Entity tags in conditional headers (RFC 9110 section 13.1).
package enum EntityTags {
    /// Whether `If-Match` allows the request. Strong comparison: weak tags never match.
    package static func ifMatch(_ value: String, allows etag: String) -> Bool {
        value.isBareStar || list(value).contains(etag)
    }

    /// Whether `If-None-Match` names the file. Weak comparison.
    package static func ifNoneMatch(_ value: String, names etag: String) -> Bool {
        value.isBareStar || list(value).contains { $0 == etag || $0 == "W/" + etag }
    }

    /// Whether `If-Range` holds: it is one strong tag that is equal. Dates never match, because a
    /// file has no validator but its tag.
    package static func ifRange(_ value: String, names etag: String) -> Bool {
        list(value) == [etag]
    }

    /// The tags of a list. Quoted text may contain commas.
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
