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
    /// Whether that credential was a link.
    let isByLink: Bool

    package init(
        status: Int,
        headerFields: HTTPFields,
        body: TransportResponseBody,
        url: String,
        hasCredentials: Bool,
        isByLink: Bool = false
    ) {
        self.status = status
        self.headerFields = headerFields
        self.body = body
        self.url = url
        self.hasCredentials = hasCredentials
        self.isByLink = isByLink
    }

    var isSuccess: Bool { (200...299).contains(status) }

    /// The facts that diagnosis records.
    var answer: ServerAnswer {
        let place = URLText.place(of: url)
        return ServerAnswer(
            status: status, requestID: headerFields[.xRequestID], host: place?.host,
            port: place?.port)
    }

    /// Reads the explanation of an unsuccessful answer, and returns the failure that the answer
    /// stands for.
    func failure(
        _ operation: String, _ subject: RequestFailure.Subject
    ) async -> RequestFailure {
        // The status counts even when its explanation does not arrive. Unlike for other calls,
        // that includes a task that is canceled meanwhile.
        let body = (try? await BodyPolicy.explanation(of: self)) ?? []
        return RequestFailure(self, body: body, operation: operation, subject: subject)
    }
}
