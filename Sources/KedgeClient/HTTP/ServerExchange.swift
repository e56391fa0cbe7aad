internal import HTTPTypes
internal import KedgeModel
package import KedgeTransport

/// Exchanges requests and answers with servers, for all protocols: attaches credentials, follows
/// redirects by the call's policy, reads bodies within limits, and translates failures.
///
/// Retries nothing. Every failure is a ``RequestFailure``.
package struct ServerExchange: Sendable {
    let credentials: ServerCredentials
    /// Tokens in place of that of ``credentials``; nil if the application gives none on request.
    let tokens: TokenSource?
    let transport: any HTTPTransport

    /// Time without a byte for a call that may take long: the server may process a whole file.
    private static let longStallTimeout = Duration.seconds(120)

    package init(
        credentials: ServerCredentials, tokens: TokenSource? = nil, transport: any HTTPTransport
    ) {
        self.credentials = credentials
        self.tokens = tokens
        self.transport = transport
    }

    /// Sends a call, and again to each redirect target. Returns when the head of the answer has
    /// arrived, whatever its status. After a 401, the application is asked for another token, and
    /// the call is sent once more with it.
    ///
    /// - Throws: ``RequestFailure``: without an answer; `REDIRECTED` for a redirect that is not
    ///   followed; `REDIRECT_LOOP`; `UNAUTHENTICATED` if the application gives no token.
    package func head(of call: ServerCall) async throws -> ServerReply {
        guard let tokens, credentials.areFor(call.url), !ServiceLink.isIn(call.url) else {
            return try await head(of: call, credentials)
        }
        let token = try await token(for: call) { try await tokens.current() }
        let reply = try await head(of: call, credentials.with(token: token))
        guard reply.status == 401, reply.hasCredentials else { return reply }
        let newer = try await self.token(for: call) { try await tokens.replacement(for: token) }
        guard newer != token else { return reply }
        return try await head(of: call, credentials.with(token: newer))
    }

    private func token(
        for call: ServerCall, _ get: () async throws -> String
    ) async throws -> String {
        do {
            return try await get()
        } catch is CancellationError {
            throw RequestFailure(TransportError(.canceled), operation: call.operation)
        } catch {
            // The text of any other error may be a secret of the application.
            let known = error as? TransferError
            throw RequestFailure(
                .unauthenticated, operation: call.operation,
                explanation: known?.explanation ?? "The application gave no token for the server.")
        }
    }

    private func head(
        of call: ServerCall, _ credentials: ServerCredentials
    ) async throws -> ServerReply {
        var trail = RedirectTrail(call.redirects, from: call.url)
        while true {
            let reply = try await send(call, to: trail.url, credentials)
            switch trail.decide(status: reply.status, location: reply.headerFields[.location]) {
            case .accept: return reply
            case .follow: continue
            case .refuse(let refusal): throw failure(refusal, reply, call)
            }
        }
    }

    /// Sends a call and reads the body of the answer, whatever its status.
    ///
    /// - Throws: ``RequestFailure``, as ``head(of:)``, and where the policy needs a body that did
    ///   not arrive.
    func reply(to call: ServerCall, reading policy: BodyPolicy) async throws -> ServerMessage {
        let head = try await head(of: call)
        do {
            return ServerMessage(head: head, body: try await policy.read(head))
        } catch {
            throw RequestFailure(error, operation: call.operation, answer: head.answer)
        }
    }

    /// Sends a call, reads the body of the answer, and throws any unsuccessful answer.
    ///
    /// - Parameter subject: The subject of the call, which decides the meaning of a bare status.
    func success(
        of call: ServerCall, about subject: RequestFailure.Subject, reading policy: BodyPolicy
    ) async throws -> ServerMessage {
        let reply = try await reply(to: call, reading: policy)
        guard reply.isSuccess else { throw reply.failure(call.operation, subject) }
        return reply
    }

    private func send(
        _ call: ServerCall, to url: String, _ credentials: ServerCredentials
    ) async throws -> ServerReply {
        let request = credentials.attached(
            to: TransportRequest(
                method: call.method, url: url, headerFields: call.fields, body: call.body,
                stallTimeout: AnswerTimeout.stallTimeout(
                    usual: call.mayTakeLong ? Self.longStallTimeout : nil),
                onBytesSent: call.onBytesSent))
        do {
            let response = try await transport.send(request)
            return ServerReply(
                status: response.status, headerFields: response.headerFields, body: response.body,
                url: url, hasCredentials: ServerCredentials.areIn(request),
                isByLink: ServerCredentials.areLink(in: request))
        } catch {
            throw RequestFailure(error, operation: call.operation)
        }
    }

    private func failure(
        _ refusal: RedirectRefusal, _ reply: ServerReply, _ call: ServerCall
    ) -> RequestFailure {
        RequestFailure(
            refusal.code, operation: call.operation, answer: reply.answer,
            explanation: refusal.sentence(from: reply.url, home: credentials.home),
            isForeign: true,
            isFromIntermediary: call.redirects.isFromIntermediary(status: reply.status))
    }
}
