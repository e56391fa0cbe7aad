import KedgeLocks

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Asks the system once more about a name that libcurl could not resolve: libcurl has one code for a
/// name that does not exist and for a resolver that cannot be asked.
enum NameLookup {
    /// True when the resolver says that there is no such name; false when it has an address by now, or
    /// cannot tell. Ends at once when the task is cancelled.
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

    /// Blocks for as long as the resolver takes.
    private static func isUnknown(_ host: String) -> Bool {
        var found: UnsafeMutablePointer<addrinfo>?
        let result = unsafe getaddrinfo(host, nil, nil, &found)
        if let found = unsafe found { unsafe freeaddrinfo(found) }
        return result == EAI_NONAME
    }

    /// The first answer wins.
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
