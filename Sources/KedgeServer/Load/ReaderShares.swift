package import KedgeModel

/// Selects slow readers to disconnect, so that other clients can connect.
///
/// A value without a clock. A reader below the minimum rate may continue unless connections are
/// scarce: nine tenths of all are in use, or its address has a quarter of all. Then the slowest
/// readers are selected first, as many as exceed the limit.
package struct ReaderShares: Equatable, Sendable {
    package typealias ConnectionID = Int

    private struct Connection: Equatable, Sendable {
        var address: ClientAddress
        /// Rate in bytes a second; nil unless a response is read below the minimum rate.
        var slowRate: Int?
    }

    private let maxConnectionCount: Int
    private let minBytesPerSecond: Int
    private var connections: [ConnectionID: Connection] = [:]
    private var counts: [ClientAddress: Int] = [:]
    private var slow: Set<ConnectionID> = []

    /// - Parameter minBytesPerSecond: Rate below which a reader is slow; 0 for none.
    package init(maxConnectionCount: Int, minBytesPerSecond: Int) {
        precondition(maxConnectionCount > 0, "there is at least one connection")
        self.maxConnectionCount = maxConnectionCount
        self.minBytesPerSecond = minBytesPerSecond
    }

    /// Number of open connections at which connections are scarce.
    package var scarceCount: Int { max(1, maxConnectionCount - maxConnectionCount / 10) }
    /// Number of connections of one address at which they are scarce for that address.
    package var shareCount: Int { max(1, maxConnectionCount / 4) }
    /// Number of open connections.
    package var count: Int { connections.count }
    /// Number of readers below the minimum rate.
    package var slowCount: Int { slow.count }

    package mutating func opened(_ id: ConnectionID, by address: ClientAddress) {
        connections[id] = Connection(address: address)
        counts[address, default: 0] += 1
    }

    /// Records that a request on the connection belongs to another client than before.
    package mutating func used(_ id: ConnectionID, by address: ClientAddress) {
        guard let known = connections[id]?.address, known != address else { return }
        leave(known)
        connections[id]?.address = address
        counts[address, default: 0] += 1
    }

    package mutating func closed(_ id: ConnectionID) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        leave(connection.address)
        slow.remove(id)
        // A dictionary does not shrink by itself.
        if connections.capacity > 64 + 8 * connections.count {
            connections = Dictionary(uniqueKeysWithValues: connections.map { ($0, $1) })
            counts = Dictionary(uniqueKeysWithValues: counts.map { ($0, $1) })
        }
    }

    /// - Parameter bytesPerSecond: The reader's rate; nil when no response is being read.
    /// - Returns: Whether the reader is slow.
    @discardableResult
    package mutating func read(_ id: ConnectionID, bytesPerSecond: Int?) -> Bool {
        let rate = bytesPerSecond.flatMap { $0 < minBytesPerSecond ? $0 : nil }
        guard connections[id] != nil else { return false }
        connections[id]?.slowRate = rate
        if rate == nil { slow.remove(id) } else { slow.insert(id) }
        return rate != nil
    }

    /// The readers to disconnect now, slowest first. They count until they are closed.
    package func victims() -> [ConnectionID] {
        guard !slow.isEmpty else { return [] }
        let ranked = slow.sorted { left, right in
            let rates = (connections[left]?.slowRate ?? 0, connections[right]?.slowRate ?? 0)
            return rates.0 != rates.1 ? rates.0 < rates.1 : left < right
        }
        var excess = connections.count - scarceCount + 1
        var excessOfAddress: [ClientAddress: Int] = [:]
        var victims: [ConnectionID] = []
        for id in ranked {
            guard let address = connections[id]?.address else { continue }
            let own = excessOfAddress[address] ?? ((counts[address] ?? 0) - shareCount + 1)
            guard excess > 0 || own > 0 else { continue }
            victims.append(id)
            excess -= 1
            excessOfAddress[address] = own - 1
        }
        return victims
    }

    private mutating func leave(_ address: ClientAddress) {
        guard let count = counts[address] else { return }
        counts[address] = count > 1 ? count - 1 : nil
    }
}
