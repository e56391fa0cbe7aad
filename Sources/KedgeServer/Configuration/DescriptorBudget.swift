/// The number of connections for which the process has file descriptors.
package struct DescriptorBudget: Equatable, Sendable {
    /// Default number of connections, if there are enough descriptors.
    package static let usualConnectionCount = 10_000
    /// Descriptors of a connection during a download: its own and two of the file.
    private static let descriptorsPerDownload = 3
    /// Descriptors of directories, the database, connections to stores, and system libraries.
    private static let ownCount = 32

    /// Maximum number of file descriptors of the process.
    package let descriptorCount: Int
    /// Maximum number of staging areas that stay open without a writer.
    package let idleStagingAreaCount: Int
    private let reservedCount: Int

    /// - Parameters:
    ///   - descriptorCount: Maximum number of file descriptors of the process.
    ///   - writeCount: Maximum number of bodies written at once.
    package init(descriptorCount: Int, writeCount: Int) {
        self.descriptorCount = descriptorCount
        idleStagingAreaCount = min(256, descriptorCount / 4)
        reservedCount =
            Self.ownCount + min(2 * writeCount, descriptorCount / 4) + idleStagingAreaCount
    }

    /// Maximum number of connections that can be configured. Each has one descriptor, with none
    /// left for downloads.
    package var largestConnectionCount: Int { max(0, descriptorCount - reservedCount) }

    /// Default number of connections. A file can be sent over each of them.
    package var connectionCount: Int {
        min(Self.usualConnectionCount, largestConnectionCount / Self.descriptorsPerDownload)
    }

    /// Returns the effective maximum number of connections.
    ///
    /// - Parameter asked: The configured maximum; nil for the default.
    /// - Throws: ``ConfigurationError`` when there are not enough descriptors for that many, or for
    ///   any.
    package func connectionCount(asked: Int?) throws -> Int {
        guard connectionCount > 0 else {
            throw ConfigurationError(
                "The process may open \(descriptorCount) files, which leaves none for connections: "
                    + "raise the limit (ulimit -n, LimitNOFILE).")
        }
        guard let asked else { return connectionCount }
        guard asked <= largestConnectionCount else {
            throw ConfigurationError(
                "limits.maxConnections is \(asked), and the process may open \(descriptorCount) "
                    + "files, which is enough for \(largestConnectionCount) connections: "
                    + "lower the one or raise the other (ulimit -n, LimitNOFILE).")
        }
        return asked
    }
}
