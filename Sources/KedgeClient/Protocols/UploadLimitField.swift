internal import KedgeModel

/// The field `Upload-Limit`: a dictionary of integers (RFC 9651, section 3.2).
package enum UploadLimitField {
    /// Parses the limits that a client uses. As the draft requires, a member of a wrong type
    /// invalidates the whole field.
    package static func parse(_ value: String?) -> ServerCapabilities? {
        guard let value else { return nil }
        var capabilities = ServerCapabilities()
        for member in value.split(separator: ",") {
            let pair = member.split(separator: "=", maxSplits: 1)
            let key = pair.first.map { $0.filter { $0 != " " && $0 != "\t" } } ?? ""
            guard ["max-size", "max-append-size", "min-append-size"].contains(key) else { continue }
            guard pair.count == 2, let item = pair[1].split(separator: ";").first,
                let number = WireInteger.parse(item.filter { $0 != " " && $0 != "\t" })
            else { return nil }
            switch key {
            case "max-size": capabilities.maxSize = number
            case "max-append-size": capabilities.maxAppendSize = number
            default: capabilities.minAppendSize = number
            }
        }
        return capabilities
    }
}
