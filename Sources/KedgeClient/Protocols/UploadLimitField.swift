internal import KedgeModel

/// The field `Upload-Limit`: a dictionary of integers (RFC 9651 section 3.2).
package enum UploadLimitField {
    /// Parses the limits that a client uses; nil without a valid field. As the draft requires, a
    /// member of a wrong type invalidates the whole field, and unknown members are ignored.
    package static func parse(_ value: String?) -> ServerCapabilities? {
        guard let value,
            let members = StructuredField.dictionary(value, acceptsEveryType: true)
        else { return nil }
        let limits: [(key: String, property: WritableKeyPath<ServerCapabilities, Int64?>)] = [
            ("max-size", \.maxSize), ("max-append-size", \.maxAppendSize),
            ("min-append-size", \.minAppendSize),
        ]
        var capabilities = ServerCapabilities()
        for (key, property) in limits {
            guard let member = members[key] else { continue }
            guard case .integer(let number) = member, number >= 0 else { return nil }
            capabilities[keyPath: property] = number
        }
        return capabilities
    }
}
