internal import HTTPTypes

extension HTTPFields {
    /// Whether a proxy has added `Via`, `Forwarded` (RFC 7239) or an `X-Forwarded-` field.
    var showProxy: Bool {
        contains { field in
            let name = field.name.canonicalName
            return name == "forwarded" || name == "via" || name.hasPrefix("x-forwarded-")
        }
    }
}
