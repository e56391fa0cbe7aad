package import HTTPTypes
internal import KedgeModel
package import KedgeTransport

/// Sends all requests of the client: attaches credentials, and decides which redirects to follow.
struct RequestSender: Sendable {
    /// Address of the server that the credentials are for. A user and password in it are sent only
    /// to its origin.
    let home: String
    /// Bearer token, sent only to the origin of ``home``; never logged or stored.
    let token: String?
    let transport: any HTTPTransport

    /// Limit of redirects followed for one request.
    private static let maxRedirectCount = 5

    /// Rule for an answer that redirects to another address.
    enum RedirectRule: Sendable {
        /// For requests to a service: the user has to name its address.
        case refused
        /// For reading a file: followed, but never from an encrypted to an unencrypted connection.
        /// The token, user and password are sent only to their own origin.
        case followed
    }

    /// Sends a request, and again to each redirect target.
    ///
    /// - Throws: ``RequestFailure``: without an answer; `REDIRECTED` for a redirect that is not
    ///   followed; `REDIRECT_LOOP`.
    func send(
        _ request: TransportRequest, operation: String, redirects: RedirectRule
    ) async throws -> ServerReply {
        var request = request
        var visited: Set<String> = [request.url]
        while true {
            let reply = try await sendOnce(request, operation)
            guard [301, 302, 303, 307, 308].contains(reply.status) else { return reply }
            let redirect = Redirect(
                from: request.url, home: home, reply: reply, operation: operation)
            let target = try redirect.target(redirects)
            guard visited.insert(target).inserted, visited.count <= Self.maxRedirectCount + 1 else {
                throw redirect.loop(to: target)
            }
            request.url = target
        }
    }

    private func sendOnce(
        _ request: TransportRequest, _ operation: String
    ) async throws -> ServerReply {
        var request = request
        let url = request.url
        if URLText.origin(of: url) == URLText.origin(of: home) {
            if let token { request.headerFields[.authorization] = "Bearer \(token)" }
            if !URLText.hasUserInfo(url) {
                request.url = URLText.url(url, withUserInfoOf: home)
            }
        }
        let hasToken = request.headerFields[.authorization] != nil
        do {
            let response = try await transport.send(request)
            return ServerReply(
                status: response.status, headerFields: response.headerFields, body: response.body,
                url: url, hasCredentials: hasToken || URLText.hasUserInfo(request.url))
        } catch {
            throw RequestFailure(error, operation: operation)
        }
    }
}

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

/// An answer that points to another address.
private struct Redirect {
    let from: String
    /// Address of the server.
    let home: String
    let reply: ServerReply
    let operation: String

    /// Returns the redirect's target, if the rule allows it.
    func target(_ rule: RequestSender.RedirectRule) throws(RequestFailure) -> String {
        guard let location = reply.headerFields[.location], !location.isEmpty,
            let resolved = URLText.resolve(location, against: from)
        else { throw refusal("The server redirects without a valid Location.") }
        let target = String(resolved.prefix { $0 != "#" })
        switch rule {
        case .refused:
            let advice = newHome(behind: target).map {
                " If that is the same server, its address is \(shown($0))."
            }
            throw refusal(
                "\(shown(from)) redirects to \(shown(target)), which is not followed."
                    + (advice ?? ""))
        case .followed where URLText.isEncrypted(from) && !URLText.isEncrypted(target):
            throw refusal(
                "\(shown(from)) redirects to \(shown(target)), which is not encrypted;"
                    + " it is not followed.")
        case .followed:
            return target
        }
    }

    func loop(to target: String) -> RequestFailure {
        failure(
            .redirectLoop,
            "\(shown(from)) redirects to \(shown(target)): too many redirects.")
    }

    /// Returns the server's new base URL if the redirect changes only that, as to https.
    private func newHome(behind target: String) -> String? {
        guard from.hasPrefix(home), from.count > home.count else { return nil }
        let path = from.dropFirst(home.count)
        guard target.hasSuffix(path), target != from else { return nil }
        return URLText.normalizedBase(String(target.dropLast(path.count)))
    }

    /// Removes possible secrets.
    private func shown(_ url: String) -> String { URLText.redacted(url) }

    private func refusal(_ explanation: String) -> RequestFailure {
        failure(.redirected, explanation)
    }

    private func failure(_ code: ErrorCode, _ explanation: String) -> RequestFailure {
        var failure = RequestFailure(code, operation: operation, answer: reply.answer)
        failure.explanation = explanation
        failure.isForeign = true
        return failure
    }
}
