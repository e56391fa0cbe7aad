/// Limits of the store's work with its database.
package struct PostgresConfiguration: Sendable {
    /// Longest that an operation waits for a free thread, a connection, and the end of a conflict
    /// with another transaction. Afterwards it is refused as unavailable.
    package var patience: Duration = .seconds(5)
    /// Longest that one statement runs on the server. The client gives up two seconds later.
    package var statementTimeout: Duration = .seconds(10)
    /// Longest that one statement waits for a lock.
    package var lockTimeout: Duration = .seconds(3)
    /// Longest that a migration waits for another node that migrates, or for readers to leave a
    /// table.
    package var migrationPatience: Duration = .seconds(120)
    /// Most operations that may wait for a thread.
    package var waitingLimit = 4096

    package init() {}
}
