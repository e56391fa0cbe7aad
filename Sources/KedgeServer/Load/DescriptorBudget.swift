/// How many connections the process has file descriptors for.
package struct DescriptorBudget: Equatable, Sendable {
    /// Connections that are held when descriptors allow it and nobody says otherwise.
    package static let usualConnectionCount = 10_000
    /// Descriptors that a connection has while a file is sent over it: its own, and two of the file.
    private static let descriptorsPerDownload = 3
    /// Directories, the database, connections to stores, and what the system's libraries open.
    private static let ownCount = 32

    /// Most file descriptors that the process may have.
    package let descriptorCount: Int
    /// Staging areas that may stay open while nobody writes to them.
    package let idleStagingAreaCount: Int
    private let reservedCount: Int

    /// - Parameters:
    ///   - descriptorCount: Most file descriptors that the process may have.
    ///   - writeCount: Most bodies that are written at once.
    package init(descriptorCount: Int, writeCount: Int) {
        self.descriptorCount = descriptorCount
        idleStagingAreaCount = min(256, descriptorCount / 4)
        reservedCount =
            Self.ownCount + min(2 * writeCount, descriptorCount / 4) + idleStagingAreaCount
    }

    /// Most connections that may be asked for: each has a descriptor, and nothing is left for files that are
    /// sent over them.
    package var largestConnectionCount: Int { max(0, descriptorCount - reservedCount) }

    /// Connections that are held when nobody says how many: a file may be sent over each of them.
    package var connectionCount: Int {
        min(Self.usualConnectionCount, largestConnectionCount / Self.descriptorsPerDownload)
    }

    /// The number of connections in force.
    ///
    /// - Parameter asked: What the configuration says; nil for as many as there are descriptors for.
    /// - Throws: ``ConfigurationError`` when that is more than there are descriptors for, or there are none.
    package func connectionCount(asked: Int?) throws -> Int {
        guard connectionCount > 0 else {
            throw ConfigurationError(
                "The process may open \(descriptorCount) files, which leaves none for connections: "
                    + "raise the limit (ulimit -n, LimitNOFILE).")
        }
        guard let asked else { return connectionCount }
        guard asked <= largestConnectionCount else {
            throw ConfigurationError(
                "limits.maxConnections is \(asked), and the process may open \(descriptorCount) files, "
                    + "which is enough for \(largestConnectionCount) connections: lower the one or raise "
                    + "the other (ulimit -n, LimitNOFILE).")
        }
        return asked
    }
}
