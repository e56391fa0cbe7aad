/// Limits of the store's database operations.
package struct PostgresConfiguration: Sendable {
    /// Longest wait of an operation for a free thread, a connection and the end of conflicts with
    /// other transactions. Afterwards it fails as `unavailable`.
    package var timeout: Duration = .seconds(5)
    /// Longest run of one statement on the server. The client gives up two seconds later.
    package var statementTimeout: Duration = .seconds(10)
    /// Longest wait of one statement for a lock.
    package var lockTimeout: Duration = .seconds(3)
    /// Longest wait of a migration for another migrating node, or for readers to leave a table.
    package var migrationTimeout: Duration = .seconds(120)
    /// Largest number of operations that may wait for a thread.
    package var waitingLimit = 4096

    package init() {}
}
