package import HTTPTypes

/// A response whose head has arrived and whose body is being received.
package struct CurlResponse: Sendable {
    /// Status and header fields of the final response, repeated fields included.
    package let head: HTTPResponse
    /// The body; dropping it unread gives the rest of the exchange up.
    package let body: CurlResponseBody
}
