/// A proxy between a store and its server that cuts a connection around a COMMIT on request.
package final class CommitCutter: Sendable {
    package enum Cut: Sendable {
        /// The server commits, and its answer is lost.
        case answer
        /// The server never sees the COMMIT.
        case question
    }

    fileprivate struct Order: Sendable {
        let cut: Cut
        let then: @Sendable () -> Void
    }

    private let relay: TCPRelay
    private let nextOrder: Shared<Order?>

    package var port: UInt16 { relay.port }

    package init(upstreamPort: UInt16) throws {
        let nextOrder = Shared<Order?>(nil)
        self.nextOrder = nextOrder
        relay = try TCPRelay(
            settings: { TCPRelay.Settings(upstreamPort: upstreamPort) },
            makeFilter: { CommitFilter(nextOrder) })
        relay.listen()
    }

    /// Ends all connections and takes no more.
    package func stop() { relay.stop() }

    /// Cuts the next connection that commits.
    ///
    /// - Parameter then: Runs after the cut, before the client hears of it. All connections wait
    ///   meanwhile.
    package func cutNextCommit(_ kind: Cut, then: @escaping @Sendable () -> Void = {}) {
        nextOrder.update { $0 = Order(cut: kind, then: then) }
    }
}

/// Looks for the COMMIT on one connection.
private final class CommitFilter: RelayFilter {
    private let nextOrder: Shared<CommitCutter.Order?>
    /// The order whose COMMIT the server has got and not yet answered.
    private var unanswered: CommitCutter.Order?

    init(_ nextOrder: Shared<CommitCutter.Order?>) { self.nextOrder = nextOrder }

    func pass(_ bytes: inout [UInt8], _ direction: RelayDirection) -> RelayStep {
        switch direction {
        case .up:
            guard Self.isCommit(bytes), let order = takeOrder() else { return .goOn }
            if order.cut == .question { return cut(order, dropping: &bytes) }
            unanswered = order
            return .goOn
        case .down:
            guard let unanswered else { return .goOn }
            return cut(unanswered, dropping: &bytes)
        }
    }

    private func cut(_ order: CommitCutter.Order, dropping bytes: inout [UInt8]) -> RelayStep {
        bytes = []
        order.then()
        return .cut(resetting: false)
    }

    private static func isCommit(_ bytes: [UInt8]) -> Bool {
        // A simple query: its letter, four bytes of length, the text.
        bytes.count >= 11 && bytes[0] == UInt8(ascii: "Q")
            && bytes[5..<11].elementsEqual("COMMIT".utf8)
    }

    private func takeOrder() -> CommitCutter.Order? {
        nextOrder.update { order in
            defer { order = nil }
            return order
        }
    }
}
