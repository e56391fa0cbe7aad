package import HTTPTypes
package import KedgeTransport

/// An answer whose head has arrived, with facts about its request.
package struct ServerReply: Sendable {
    let status: Int
    let headerFields: HTTPFields
    let body: TransportResponseBody
    /// URL of the last request, after any redirects.
    let url: String
    /// Whether the request carried the token, or a user and password.
    let hasCredentials: Bool

    package init(
        status: Int,
        headerFields: HTTPFields,
        body: TransportResponseBody,
        url: String,
        hasCredentials: Bool
    ) {
        self.status = status
        self.headerFields = headerFields
        self.body = body
        self.url = url
        self.hasCredentials = hasCredentials
    }

    /// The facts that diagnosis records.
    var answer: ServerAnswer {
        let place = URLText.place(of: url)
        return ServerAnswer(
            status: status, requestID: headerFields[.xRequestID], host: place?.host,
            port: place?.port)
    }
}
