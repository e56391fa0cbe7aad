package import HTTPTypes
package import KedgeTransport

/// A request to a server, without the fields that every request has.
package struct ServerCall: Sendable {
    /// For example `finalize`.
    let operation: String
    let method: HTTPRequest.Method
    let url: String
    let redirects: RedirectPolicy
    var fields: HTTPFields
    var body: TransportBody?
    /// True if the server may take long to answer.
    var mayTakeLong = false
    var onBytesSent: (@Sendable (Int64) -> Void)?

    package init(
        _ operation: String, _ method: HTTPRequest.Method, _ url: String,
        redirects: RedirectPolicy, fields: HTTPFields = [:], body: TransportBody? = nil
    ) {
        self.operation = operation
        self.method = method
        self.url = url
        self.redirects = redirects
        self.fields = fields
        self.body = body
    }
}
