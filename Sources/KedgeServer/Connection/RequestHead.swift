internal import NIOHTTP1

extension HTTPRequestHead {
    /// Whether the connection closes after the response.
    ///
    /// Always true before HTTP/1.1. There, persistent connections are an extension that proxies get
    /// wrong (RFC 9112 section 9.3).
    ///
    /// Also true when the end of the body is ambiguous. This server could read the following bytes
    /// as a request, and a front end could read them as the rest of the body.
    var isLastOnConnection: Bool { version.minor < 1 || !isKeepAlive || hasDoubtfulEnd }

    /// Whether the body has a transfer coding other than `chunked` alone.
    private var hasDoubtfulEnd: Bool {
        let codings = headers["transfer-encoding"]
        return !codings.isEmpty && codings.map { $0.lowercased() } != ["chunked"]
    }

    /// Normalizes the fields for the next handlers, which see neither the version nor the authority
    /// of the target.
    mutating func normalize() {
        if isLastOnConnection { headers.replaceOrAdd(name: "connection", value: "close") }
        // RFC 9110 sections 10.1.1 and 15.2: a client before HTTP/1.1 does not wait for `100
        // Continue` and gets no other interim response. Uploads get a 104 only if the request names
        // a version.
        if version.minor < 1 {
            headers.remove(name: "expect")
            headers.remove(name: "upload-draft-interop-version")
        }
        // RFC 9112 section 3.2.2: the host in the target takes precedence over `Host`. A missing or
        // repeated `Host` is left as it is and refused later.
        if let authority = targetAuthority, headers["host"].count == 1 {
            headers.replaceOrAdd(name: "host", value: authority)
        }
    }

    /// The authority of a target in absolute form; nil for a path.
    private var targetAuthority: String? {
        guard !uri.hasPrefix("/"), let mark = uri.firstRange(of: "://") else { return nil }
        return String(uri[mark.upperBound...].prefix { !"/?#".contains($0) })
    }
}
