import CCurl
import HTTPTypes
import KedgeTransport

extension EasyHandle {
    /// libcurl's largest receive buffer. One system call per buffer bounds the rate.
    private static let largestReceiveBufferByteCount = 256 * 1024
    /// libcurl's smallest receive buffer.
    private static let smallestReceiveBufferByteCount = 1024
    /// The upload buffer of large bodies; small ones keep libcurl's 64 KiB.
    private static let sendBufferByteCount = 512 * 1024

    /// Longest wait of a body for the interim response that its `Expect` field asked for. A server
    /// without support for it delays each such request by this much.
    private static let expectTimeoutMilliseconds = 1000

    /// Creates a handle with all options that do not need the transfer's address.
    static func make(
        for request: TransportRequest, configuration: CurlClient.Configuration
    ) throws(Refusal) -> EasyHandle {
        var easy = try EasyHandle()
        // Other servers never see the certificate of one: it names its owner.
        let own =
            configuration.origins.isEmpty
            ? nil : URLText.origin(of: request.url).flatMap { configuration.origins[$0] }
        try easy.setConnection(configuration, own)
        try easy.setCertificate(own?.clientCertificate)
        try easy.set(CURLOPT_URL, to: request.url)
        // Object keys may contain `..`, and a signature covers the path as written.
        try easy.set(CURLOPT_PATH_AS_IS, to: true)
        try easy.set(CURLOPT_USERAGENT, to: configuration.userAgent)
        try easy.setMethod(of: request)
        try easy.setFields(lines(for: request.headerFields))
        return easy
    }

    /// - Parameter own: Settings of the request's origin.
    private func setConnection(
        _ configuration: CurlClient.Configuration, _ own: OriginSettings?
    ) throws(Refusal) {
        // Signals are process-wide; libcurl must not use them for timeouts on a thread.
        try set(CURLOPT_NOSIGNAL, to: true)
        // Otherwise removing a handle joins its resolver thread, and all transfers wait for DNS.
        try set(CURLOPT_QUICK_EXIT, to: true)
        try set(CURLOPT_PROTOCOLS_STR, to: "http,https")
        try set(CURLOPT_FOLLOWLOCATION, to: false)
        try set(CURLOPT_HTTP_VERSION, to: CURL_HTTP_VERSION_1_1)
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, to: true)
        try set(CURLOPT_TCP_KEEPALIVE, to: true)
        try set(CURLOPT_TCP_NODELAY, to: true)
        try set(CURLOPT_BUFFERSIZE, to: Self.receiveBufferByteCount(configuration))
        try set(CURLOPT_CONNECTTIMEOUT_MS, to: configuration.connectTimeout.wholeMilliseconds)
        if let caFile = own?.caFile ?? configuration.caFile {
            try set(CURLOPT_CAINFO, to: caFile)
            // Otherwise the system's directory of authorities is trusted as well.
            try set(CURLOPT_CAPATH, to: nil)
        }
        if let path = configuration.unixSocketPath {
            // Proxies do not apply to it.
            try set(CURLOPT_UNIX_SOCKET_PATH, to: path)
        }
        if !configuration.usesEnvironmentProxy { try set(CURLOPT_PROXY, to: "") }
        if let proxy = own?.proxy ?? configuration.proxy { try set(CURLOPT_PROXY, to: proxy) }
    }

    /// Returns the size of the receive buffer, at most the bytes of one second: a low rate is not
    /// exceeded by one call.
    private static func receiveBufferByteCount(_ configuration: CurlClient.Configuration) -> Int {
        let most = configuration.bandwidth?().download ?? .max
        return max(
            smallestReceiveBufferByteCount, Int(min(most, Int64(largestReceiveBufferByteCount))))
    }

    private func setCertificate(_ certificate: ClientCertificate?) throws(Refusal) {
        guard let certificate else { return }
        try set(CURLOPT_SSLCERT, to: certificate.certificateFile)
        try set(CURLOPT_SSLKEY, to: certificate.keyFile ?? certificate.certificateFile)
    }

    private func setMethod(of request: TransportRequest) throws(Refusal) {
        if request.method == .head {
            try set(CURLOPT_NOBODY, to: true)
            // Some servers send a body anyway; the next request must not take it for its answer.
            try set(CURLOPT_FORBID_REUSE, to: true)
            return
        }
        let announcesEmptyBody = [.post, .put, .patch].contains(request.method)
        if request.body != nil || announcesEmptyBody {
            let byteCount = request.body?.byteCount ?? 0
            try set(CURLOPT_UPLOAD, to: true)
            try set(CURLOPT_INFILESIZE_LARGE, toOffset: byteCount)
            try set(CURLOPT_EXPECT_100_TIMEOUT_MS, to: Self.expectTimeoutMilliseconds)
            if byteCount > Self.sendBufferByteCount / 8 {
                try set(CURLOPT_UPLOAD_BUFFERSIZE, to: Self.sendBufferByteCount)
            }
        }
        try set(CURLOPT_CUSTOMREQUEST, to: request.method.rawValue)
    }

    /// Returns the header fields in the form that `CURLOPT_HTTPHEADER` takes.
    private static func lines(for fields: HTTPFields) -> [String] {
        var lines: [String] = []
        for field in fields where field.name != .contentLength && field.name != .transferEncoding {
            // A name with a colon and no value would remove the field instead.
            lines.append(
                field.value.isEmpty
                    ? "\(field.name.rawName);" : "\(field.name.rawName): \(field.value)")
        }
        // Otherwise large bodies wait up to a second for an interim response that few servers send.
        if !fields.contains(.expect) { lines.append("Expect:") }
        return lines
    }
}

extension Duration {
    /// Whole milliseconds, rounded up so that a short wait never becomes zero.
    package var wholeMilliseconds: Int {
        let (seconds, attoseconds) = components
        let milliseconds = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        guard seconds < Int64(Int32.max) / 1000 else { return Int(Int32.max) }
        return max(Int(seconds * 1000 + milliseconds), 0)
    }
}
