internal import KedgeModel

/// The changes of one transfer, or of all.
///
/// It looks at the records a few times a second, so it sees what other processes do, too, and holds
/// nothing while nobody asks.
public struct TransferSnapshots: AsyncSequence, Sendable {
    /// One state of one transfer.
    public typealias Element = TransferSnapshot
    /// ``TransferError`` when the records cannot be read.
    public typealias Failure = any Error

    /// Between two looks at the records.
    fileprivate static let interval = Duration.milliseconds(200)

    let client: TransferClient
    /// Nil for all transfers.
    let id: TransferID?

    /// Begins to watch; the first element is the present state.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(client: client, id: id) }

    /// Watches for one reader.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let client: TransferClient
        let id: TransferID?
        private var seen: [TransferID: TransferSnapshot] = [:]
        private var ready: [TransferSnapshot] = []
        private var isOver = false

        init(client: TransferClient, id: TransferID?) {
            self.client = client
            self.id = id
        }

        /// The next change; nil after a final state, or when the task is canceled.
        public mutating func next() async throws -> TransferSnapshot? {
            while !isOver, !Task.isCancelled {
                if !ready.isEmpty { return ready.removeFirst() }
                if let id {
                    let snapshot = try await client.transfer(id)
                    isOver = snapshot.state.isFinal
                    if seen.updateValue(snapshot, forKey: id) != snapshot { return snapshot }
                } else {
                    for snapshot in try await client.transfers()
                    where seen.updateValue(snapshot, forKey: snapshot.id) != snapshot {
                        ready.append(snapshot)
                    }
                    if !ready.isEmpty { continue }
                }
                // Canceled while waiting: the loop ends.
                try? await Task.sleep(for: TransferSnapshots.interval)
            }
            return nil
        }
    }
}
