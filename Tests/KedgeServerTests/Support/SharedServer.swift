import Testing

/// One server for all tests that need no special settings. The tests use it concurrently, as many
/// clients do, and hostile requests run beside honest ones.
///
/// It runs while a test uses it.
actor SharedServer {
    private static let instance = SharedServer()
    private var userCount = 0
    private var server: Task<RunningServer, any Error>?

    /// Lends the server and checks afterwards that it still answers.
    @discardableResult
    static func use<Result: Sendable>(
        _ body: (RunningServer) async throws -> Result
    ) async throws -> Result {
        let server = try await instance.enter()
        let result: Result
        do {
            result = try await body(server)
            try await expectAlive(server)
        } catch {
            try await instance.leave()
            throw error
        }
        try await instance.leave()
        return result
    }

    private func enter() async throws -> RunningServer {
        userCount += 1
        // Awaited by every user of the server, and by the last one to leave.
        let starting = server ?? Task { try await ServerEnvironment().start() }
        server = starting
        return try await starting.value
    }

    private func leave() async throws {
        userCount -= 1
        guard userCount == 0, let last = server else { return }
        server = nil
        try await last.value.stop()
    }
}
