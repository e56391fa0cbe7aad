import CCurl

/// The part of a URL that decides which connections it can use, by libcurl's own parser.
package struct URLOrigin: Hashable, Sendable {
    let scheme: String
    let host: String
    let port: String

    /// Parses an absolute URL; nil if libcurl would not accept it.
    package init?(_ url: String) {
        // libcurl reads up to a NUL and would connect to a different host than the text names.
        guard !url.utf8.contains(0) else { return nil }
        guard let parsed = unsafe curl_url() else { return nil }
        defer { unsafe curl_url_cleanup(parsed) }
        guard unsafe curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK,
            let scheme = unsafe Self.part(CURLUPART_SCHEME, of: parsed),
            let host = unsafe Self.part(CURLUPART_HOST, of: parsed),
            let port = unsafe Self.part(CURLUPART_PORT, of: parsed)
        else { return nil }
        (self.scheme, self.host, self.port) = (scheme, host.lowercased(), port)
    }

    private static func part(_ part: CURLUPart, of url: OpaquePointer) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        let result = unsafe curl_url_get(url, part, &text, UInt32(CURLU_DEFAULT_PORT))
        guard result == CURLUE_OK, let text = unsafe text else { return nil }
        defer { unsafe curl_free(text) }
        return unsafe String(cString: text)
    }
}
