internal import NIOHTTP1

extension HTTPRequestHead {
    /// True when the connection ends with the answer. Before HTTP/1.1 it always does: keeping it is an
    /// extension there that proxies get wrong (RFC 9112 section 9.3), so it is not offered.
    ///
    /// So it does when the end of the body is in doubt: what follows could be taken for a request here, and for
    /// the rest of the body by a front end.
    var isLastOnConnection: Bool { version.minor < 1 || !isKeepAlive || hasDoubtfulEnd }

    /// True when the body has another coding than `chunked` alone.
    private var hasDoubtfulEnd: Bool {
        let codings = headers["transfer-encoding"]
        return !codings.isEmpty && codings.map { $0.lowercased() } != ["chunked"]
    }

    /// Says in fields what the next handlers would not see: they know neither the version nor more of
    /// the target than its path.
    mutating func spellOut() {
        if isLastOnConnection { headers.replaceOrAdd(name: "connection", value: "close") }
        // RFC 9110 sections 10.1.1 and 15.2: an older client does not wait for `100 Continue`, and is
        // sent no other interim response, either. Those to uploads come to who names a version.
        if version.minor < 1 {
            headers.remove(name: "expect")
            headers.remove(name: "upload-draft-interop-version")
        }
        // RFC 9112 section 3.2.2: the host in the target counts, and not the one beside it. None, or
        // several, stay what they are, and are refused.
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
