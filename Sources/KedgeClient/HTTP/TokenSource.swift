internal import KedgeModel

/// The token of one server, which the application returns on request.
///
/// Requests that need a token at the same time share one call of the application's closure.
package actor TokenSource {
    private let ask: @Sendable () async throws -> String
    private var token: String?
    /// The running call; nil while none runs.
    private var call: Task<Void, Never>?
    /// Number of calls so far. The result of an abandoned call is ignored.
    private var callCount = 0
    private var waiting: [Int: CheckedContinuation<String, any Error>] = [:]
    private var nextPlace = 0

    /// - Parameters:
    ///   - first: The first token; nil to ask for it.
    ///   - ask: Returns a token.
    package init(first: String?, ask: @escaping @Sendable () async throws -> String) {
        self.token = first
        self.ask = ask
    }

    /// Returns the known token, or asks for one.
    ///
    /// - Throws: Errors of the closure; `TransferError` for a text that is no token;
    ///   `CancellationError`.
    package func current() async throws -> String {
        if let token { return token }
        return try await answer()
    }

    /// Returns the token to use after the server has refused one: the newer token that another
    /// request has got since, or the one that the closure returns now.
    ///
    /// - Throws: As ``current()``.
    package func replacement(for refused: String) async throws -> String {
        if let token, token != refused { return token }
        return try await answer()
    }

    /// Forgets the token, so that the next request asks for one.
    package func forget() { token = nil }

    /// Waits for the result of one call, or until the task is canceled.
    private func answer() async throws -> String {
        let place = nextPlace
        nextPlace += 1
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard !Task.isCancelled else {
                    return continuation.resume(throwing: CancellationError())
                }
                waiting[place] = continuation
                if call == nil { start() }
            }
        } onCancel: {
            // Ends at once: it only removes the continuation.
            Task { await leave(place) }
        }
    }

    private func start() {
        callCount += 1
        let (ask, number) = (ask, callCount)
        // Ended by its result, or canceled with its last waiting request. Detached, because a
        // closure that blocks must not block this actor.
        call = Task.detached {
            let result: Result<String, any Error>
            do {
                result = .success(try Self.validated(try await ask()))
            } catch {
                result = .failure(error)
            }
            await self.finish(result, number)
        }
    }

    private func finish(_ result: Result<String, any Error>, _ number: Int) {
        guard number == callCount, call != nil else { return }
        call = nil
        if case .success(let newer) = result { token = newer }
        let continuations = waiting.values
        waiting = [:]
        for continuation in continuations { continuation.resume(with: result) }
    }

    private func leave(_ place: Int) {
        waiting.removeValue(forKey: place)?.resume(throwing: CancellationError())
        guard waiting.isEmpty else { return }
        call?.cancel()
        call = nil
    }

    /// - Throws: `UNAUTHENTICATED` for a text that no header field can carry.
    private static func validated(_ token: String) throws -> String {
        guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw TransferError(
                .unauthenticated, operation: "get token",
                explanation: "The application returned a text that is no token.")
        }
        return token
    }
}
