/// A TCP proxy on 127.0.0.1 that applies faults to the bytes that pass, and counts them.
///
/// Clients keep one address while servers behind it come and go.
package final class FaultyProxy: Sendable {
    /// Counts of the bytes that passed, and of the faults applied to them.
    package struct Counts: Sendable {
        /// Bytes that reached the server, and the client.
        package var upByteCount = 0
        package var downByteCount = 0
        package var connectionCount = 0
        /// Connections through which bytes may still pass.
        package var openCount = 0
        package var cutCount = 0
        package var flipCount = 0
        package var stallCount = 0
        /// Heads of requests, in the order in which they came.
        package var requests: [HTTPMessage] = []
    }

    fileprivate struct State: Sendable {
        var faults: Faults
        var upstreamPort: UInt16
        var counts = Counts()
        /// Bytes of large bodies in the harmed direction, over all connections.
        var bodyByteCount = 0
    }

    private let relay: TCPRelay
    private let state: Shared<State>

    package var port: UInt16 { relay.port }
    package var url: String { "http://127.0.0.1:\(port)" }

    /// - Parameter isListening: False refuses connections until ``listen()``.
    package init(upstreamPort: UInt16, faults: Faults, isListening: Bool = true) throws {
        let state = Shared(State(faults: faults, upstreamPort: upstreamPort))
        self.state = state
        relay = try TCPRelay(
            settings: {
                state.update { state in
                    TCPRelay.Settings(
                        upstreamPort: state.upstreamPort,
                        bytesPerSecond: state.faults.bytesPerSecond)
                }
            },
            makeFilter: { FaultyFilter(state) })
        if isListening { listen() }
    }

    /// Accepts connections from now on.
    package func listen() { relay.listen() }

    /// Ends all connections and takes no more.
    package func stop() { relay.stop() }

    package var faults: Faults {
        get { state.update { $0.faults } }
        set { state.update { $0.faults = newValue } }
    }

    package var upstreamPort: UInt16 {
        get { state.update { $0.upstreamPort } }
        set { state.update { $0.upstreamPort = newValue } }
    }

    package var counts: Counts { state.update { $0.counts } }
}

/// The faults of one connection.
private final class FaultyFilter: RelayFilter {
    private let state: Shared<FaultyProxy.State>
    /// The faults at the time of the last read.
    private var faults = Faults()
    private var streams: [RelayDirection: FaultyStream] = [.up: .init(), .down: .init()]

    init(_ state: Shared<FaultyProxy.State>) {
        self.state = state
        state.update { state in
            state.counts.connectionCount += 1
            state.counts.openCount += 1
        }
    }

    func readLimit(_ direction: RelayDirection) -> Int {
        faults = state.update { $0.faults }
        guard direction == faults.direction, let most = faults.cutsAfter else { return .max }
        return most - (streams[direction]?.readByteCount ?? 0)
    }

    func pass(_ bytes: inout [UInt8], _ direction: RelayDirection) -> RelayStep {
        let (heads, bodies) = streams[direction, default: FaultyStream()].follow(bytes)
        if direction == .up, !heads.isEmpty {
            state.update { $0.counts.requests += heads }
        }
        guard direction == faults.direction, let stream = streams[direction] else { return .goOn }
        if let distance = faults.flipsEvery { flip(bodies, of: &bytes, every: distance) }
        let isCutDue =
            faults.cutsAfter.map { stream.readByteCount >= $0 } ?? false
            || faults.cutsAfterAnswers.map { stream.tracker.bodyCount >= $0 } ?? false
        if isCutDue { return .cut(resetting: faults.cut == .reset) }
        if let most = faults.stallsAfter, stream.readByteCount >= most, takesStall() {
            return .stall
        }
        return .goOn
    }

    /// Whether one of the planned stalls is left for this connection.
    private func takesStall() -> Bool {
        state.update { [faults] state in
            guard state.counts.stallCount < faults.stallCount else { return false }
            state.counts.stallCount += 1
            return true
        }
    }

    private func flip(_ bodies: [Range<Int>], of bytes: inout [UInt8], every distance: Int) {
        for body in bodies {
            let target: Int? = state.update { state in
                let before = state.bodyByteCount
                state.bodyByteCount += body.count
                let next = (before / distance + 1) * distance
                guard next <= state.bodyByteCount else { return nil }
                state.counts.flipCount += 1
                return body.lowerBound + next - before - 1
            }
            if let target { bytes[target] ^= 0x10 }
        }
    }

    func notePassed(_ byteCount: Int, _ direction: RelayDirection) {
        state.update { state in
            switch direction {
            case .up: state.counts.upByteCount += byteCount
            case .down: state.counts.downByteCount += byteCount
            }
        }
    }

    func noteCut() { state.update { $0.counts.cutCount += 1 } }

    func noteEnd() { state.update { $0.counts.openCount -= 1 } }
}

/// The bytes of one direction so far.
private struct FaultyStream {
    private(set) var readByteCount = 0
    private(set) var tracker = MessageTracker()

    /// Follows the next bytes.
    ///
    /// - Returns: The heads that end in them, and the ranges of large bodies in them.
    mutating func follow(_ bytes: [UInt8]) -> (heads: [HTTPMessage], bodies: [Range<Int>]) {
        let headCount = tracker.heads.count
        readByteCount += bytes.count
        let bodies = tracker.follow(bytes[...])
        return (Array(tracker.heads[headCount...]), bodies)
    }
}
