internal import KedgeModel

/// Changes of one transfer, or of all.
///
/// Polls the records a few times a second, so it includes changes by other processes. Holds no
/// resources between calls of `next()`.
public struct TransferSnapshots: AsyncSequence, Sendable {
    /// State of one transfer.
    public typealias Element = TransferSnapshot
    /// ``TransferError`` if the records cannot be read.
    public typealias Failure = any Error

    /// Polling interval.
    fileprivate static let interval = Duration.milliseconds(200)

    let client: TransferClient
    /// Nil for all transfers.
    let id: TransferID?

    /// Returns an iterator. Its first element is the current state.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(client: client, id: id) }

    /// Iterator for one reader.
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

        /// Returns the next change; nil after a final state or when the task is canceled.
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
                // Cancellation ends the loop.
                try? await Task.sleep(for: TransferSnapshots.interval)
            }
            return nil
        }
    }
}
