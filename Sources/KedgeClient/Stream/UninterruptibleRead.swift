internal import KedgeLocks

/// A read that may block for ever, such as that of a pipe whose writer is silent. Waiting for it
/// ends when the task is canceled; the read itself goes on.
final class UninterruptibleRead: Sendable {
    private struct State {
        var result: Result<[UInt8], any Error>?
        var continuation: CheckedContinuation<[UInt8], any Error>?
    }

    private let state = Mutex(State())

    init(_ read: @escaping @Sendable () async throws -> [UInt8]) {
        Task {
            do {
                end(.success(try await read()))
            } catch {
                end(.failure(error))
            }
        }
    }

    /// The bytes; may be awaited once.
    ///
    /// - Throws: The error of the read; `CancellationError`.
    var bytes: [UInt8] {
        get async throws {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let result = state.withLock { state in
                        if state.result == nil { state.continuation = continuation }
                        return state.result
                    }
                    if let result { continuation.resume(with: result) }
                }
            } onCancel: {
                end(.failure(CancellationError()))
            }
        }
    }

    private func end(_ result: Result<[UInt8], any Error>) {
        let continuation = state.withLock { state in
            state.result = state.result ?? result
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(with: result)
    }
}
