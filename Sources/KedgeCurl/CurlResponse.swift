package import HTTPTypes

/// A response whose head has arrived and whose body is being received.
package struct CurlResponse: Sendable {
    /// Status and header fields of the final response, including repeated fields.
    package let head: HTTPResponse
    /// The body. Dropping it unread cancels the rest of the exchange.
    package let body: CurlResponseBody
}
