import KedgeLocks

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Resolves a name once more after libcurl could not. libcurl has one code for a name that does not
/// exist and for a resolver that does not answer.
enum NameLookup {
    /// Whether the resolver reports that the name does not exist. False when it has an address by
    /// now, when the resolver cannot answer, and when the task is cancelled; a cancellation returns
    /// at once.
    static func isMissing(_ host: String) async -> Bool {
        let answer = Answer()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                answer.wait(waiter)
                let hasStarted = DetachedThread.start { answer.give(isUnknown(host)) }
                if !hasStarted { answer.give(false) }
            }
        } onCancel: {
            answer.give(false)
        }
    }

    /// Blocks until the resolver answers.
    private static func isUnknown(_ host: String) -> Bool {
        var found: UnsafeMutablePointer<addrinfo>?
        let result = unsafe getaddrinfo(host, nil, nil, &found)
        if let found = unsafe found { unsafe freeaddrinfo(found) }
        return result == EAI_NONAME
    }

    /// A continuation that is resumed once, with the first answer.
    private final class Answer: Sendable {
        private struct State {
            var waiter: CheckedContinuation<Bool, Never>?
            var answer: Bool?
        }
        private let state = Mutex(State())

        func wait(_ waiter: CheckedContinuation<Bool, Never>) {
            let answer: Bool? = state.withLock { state in
                if state.answer == nil { state.waiter = waiter }
                return state.answer
            }
            if let answer { waiter.resume(returning: answer) }
        }

        func give(_ answer: Bool) {
            let waiter = state.withLock { state in
                state.answer = state.answer ?? answer
                return state.waiter.take()
            }
            waiter?.resume(returning: answer)
        }
    }
}
