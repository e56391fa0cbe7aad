package import HTTPTypes

/// One HTTP request for ``CurlClient/send(_:)``.
///
/// A response of 3xx is handed back like any other: following it is the caller's decision, because
/// only the caller knows whether its credentials may go where the redirect points.
package struct CurlRequest: Sendable {
    /// The method; `HEAD` never sends a body.
    package var method: HTTPRequest.Method
    /// An absolute `http` or `https` URL, percent-encoded already; dot segments stay.
    package var url: String
    /// Header fields as they are to be sent.
    ///
    /// `Content-Length` and `Transfer-Encoding` are left out, since the body decides them. No
    /// `Accept-Encoding` is added, and no content coding is ever undone.
    package var headerFields: HTTPFields
    /// What to send; `nil` sends no body, which for `POST`, `PUT` and `PATCH` is an empty one.
    package var body: CurlRequestBody?
    /// The longest the whole exchange may take, waiting for a connection and reading the response
    /// body included; `nil`, the default, sets no limit beyond the stall timeout.
    package var timeout: Duration?
    /// Replaces ``CurlClient/Configuration/stallTimeout`` for this request, for calls whose answer
    /// the server is known to think about for long.
    package var stallTimeout: Duration?
    /// Told how many bytes of the body have been handed to the connection so far.
    ///
    /// It runs on the curl thread and must return at once. A body that was begun is never sent again
    /// by itself, not even when a kept connection turns out to be dead; what the server kept of it only
    /// the server knows.
    package var onBytesSent: (@Sendable (Int64) -> Void)?

    /// Makes a request.
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
