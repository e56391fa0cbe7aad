internal import HTTPTypes

extension HTTPFields {
    /// True when a proxy says that it stands between: `Via`, `Forwarded` (RFC 7239), or a field of
    /// the kind that came before it.
    var showProxy: Bool {
        contains { field in
            let name = field.name.canonicalName
            return name == "forwarded" || name == "via" || name.hasPrefix("x-forwarded-")
        }
    }
}
