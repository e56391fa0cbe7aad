import HTTPTypes
import KedgeLocks

/// One request and its answer on their way through the network. Either end may find the exchange
/// cut.
final class Exchange: Sendable {
    /// The other end is gone.
    struct Cut: Error {}

    struct Head: Sendable {
        let status: Int
        let fields: HTTPFields
    }

    private struct State: Sendable {
        var isCut = false
        var head: Head?
        var pieces: [[UInt8]] = []
        var isComplete = false
        var changeCount = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    var isCut: Bool { state.withLock { $0.isCut } }

    /// The connection is gone for both ends.
    func cut() { change { $0.isCut = true } }

    func answer(_ head: Head) throws {
        if isCut { throw Cut() }
        change { $0.head = head }
    }

    func append(_ piece: [UInt8]) throws {
        if isCut { throw Cut() }
        change { $0.pieces.append(piece) }
    }

    func complete() { change { $0.isComplete = true } }

    /// Waits for the head of the answer; nil when the exchange was cut first.
    func head() async -> Head? {
        while true {
            let (head, isCut, count) = state.withLock { ($0.head, $0.isCut, $0.changeCount) }
            if head != nil || isCut { return isCut ? nil : head }
            await changed(since: count)
        }
    }

    /// Waits for the next bytes of the answer's body; nil at its end.
    func nextPiece() async throws -> [UInt8]? {
        while true {
            let (state, piece) = state.withLock { state -> (State, [UInt8]?) in
                let before = state
                let isThere = !state.pieces.isEmpty && !state.isCut
                return (before, isThere ? state.pieces.removeFirst() : nil)
            }
            if let piece { return piece }
            if state.isCut { throw Cut() }
            if state.isComplete { return nil }
            await changed(since: state.changeCount)
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiting = state.withLock { state in
            body(&state)
            state.changeCount += 1
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    private func changed(since count: Int) async {
        await withCheckedContinuation { continuation in
            let hasChanged = state.withLock { state in
                if state.changeCount == count { state.waiting.append(continuation) }
                return state.changeCount != count
            }
            if hasChanged { continuation.resume() }
        }
    }
}
