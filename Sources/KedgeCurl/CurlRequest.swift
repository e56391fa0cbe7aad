package import HTTPTypes

/// One HTTP request for ``CurlClient/send(_:)``.
///
/// A 3xx response is returned like any other: only the caller knows whether its credentials may go
/// to the redirect's target.
package struct CurlRequest: Sendable {
    /// The method; `HEAD` never sends a body.
    package var method: HTTPRequest.Method
    /// An absolute `http` or `https` URL, already percent-encoded; dot segments stay.
    package var url: String
    /// Header fields to send.
    ///
    /// `Content-Length` and `Transfer-Encoding` are left out: the body decides them. No
    /// `Accept-Encoding` is added, and no content coding is undone.
    package var headerFields: HTTPFields
    /// The body. For `POST`, `PUT` and `PATCH`, `nil` sends an empty one.
    package var body: CurlRequestBody?
    /// Longest time for the whole exchange, including waiting for a connection and reading the
    /// response body. `nil`, the default, sets no limit beyond the stall timeout.
    package var timeout: Duration?
    /// Replaces ``CurlClient/Configuration/stallTimeout`` for a request whose answer is known to
    /// take the server long.
    package var stallTimeout: Duration?
    /// Called with the number of body bytes handed to the connection so far.
    ///
    /// It runs on the curl thread and must return at once. A body that was begun is never sent
    /// again automatically, not even after a kept connection turns out to be dead; only the server
    /// knows which bytes it kept.
    package var onBytesSent: (@Sendable (Int64) -> Void)?

    /// Creates a request.
    package init(
        method: HTTPRequest.Method,
        url: String,
        headerFields: HTTPFields = [:],
        body: CurlRequestBody? = nil,
        timeout: Duration? = nil,
        stallTimeout: Duration? = nil,
        onBytesSent: (@Sendable (Int64) -> Void)? = nil
    ) {
        self.method = method
        self.url = url
        self.headerFields = headerFields
        self.body = body
        self.timeout = timeout
        self.stallTimeout = stallTimeout
        self.onBytesSent = onBytesSent
    }
}
