public import HTTPTypes

/// One HTTP request.
public struct TransportRequest: Sendable {
    /// The method; `HEAD` and `GET` send no body.
    public var method: HTTPRequest.Method
    /// An absolute `http` or `https` URL, percent-encoded.
    public var url: String
    /// Header fields to send; the transport adds `Content-Length` from the body.
    public var headerFields: HTTPFields
    /// The body; nil for none.
    public var body: TransportBody?
    /// Longest time without a byte in either direction; nil for the transport's default. Calls that
    /// may take long on the server set a larger one.
    public var stallTimeout: Duration?
    /// Longest time for the whole exchange, including waiting for a connection and reading the
    /// response body; nil for no limit beyond the stall timeout. Only libcurl's client applies it.
    package var timeout: Duration?
    /// Called with the number of body bytes handed to the connection so far; must return at once.
    /// The server may have kept fewer.
    public var onBytesSent: (@Sendable (Int64) -> Void)?

    /// Creates a request.
    public init(
        method: HTTPRequest.Method, url: String, headerFields: HTTPFields = [:],
        body: TransportBody? = nil, stallTimeout: Duration? = nil,
        onBytesSent: (@Sendable (Int64) -> Void)? = nil
    ) {
        self.method = method
        self.url = url
        self.headerFields = headerFields
        self.body = body
        self.stallTimeout = stallTimeout
        self.onBytesSent = onBytesSent
    }
}
