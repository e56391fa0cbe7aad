internal import HTTPTypes
internal import KedgeModel
internal import KedgeTransport

/// Sends all requests of the client: attaches credentials and follows redirects by the policy.
struct RequestSender: Sendable {
    let credentials: ServerCredentials
    let transport: any HTTPTransport

    /// Sends a request, and again to each redirect target.
    ///
    /// - Throws: ``RequestFailure``: without an answer; `REDIRECTED` for a redirect that is not
    ///   followed; `REDIRECT_LOOP`.
    func send(
        _ request: TransportRequest, operation: String, redirects: RedirectPolicy
    ) async throws -> ServerReply {
        var trail = RedirectTrail(redirects, from: request.url)
        while true {
            var request = request
            let url = trail.url
            request.url = url
            let reply = try await sendOnce(request, operation)
            switch trail.decide(status: reply.status, location: reply.headerFields[.location]) {
            case .accept: return reply
            case .follow: continue
            case .refuse(let refusal):
                var failure = RequestFailure(
                    refusal.code, operation: operation, answer: reply.answer)
                failure.explanation = refusal.sentence(from: url, home: credentials.home)
                failure.isForeign = true
                failure.isFromIntermediary = redirects.isFromIntermediary(status: reply.status)
                throw failure
            }
        }
    }

    private func sendOnce(
        _ request: TransportRequest, _ operation: String
    ) async throws -> ServerReply {
        let complete = credentials.attached(to: request)
        do {
            let response = try await transport.send(complete)
            return ServerReply(
                status: response.status, headerFields: response.headerFields, body: response.body,
                url: request.url, hasCredentials: ServerCredentials.areIn(complete))
        } catch {
            throw RequestFailure(error, operation: operation)
        }
    }
}
