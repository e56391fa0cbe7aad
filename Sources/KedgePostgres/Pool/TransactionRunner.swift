internal import KedgeEngine

/// Rolls a transaction back and still returns a value.
struct RolledBack<Value: Sendable>: Error {
    let value: Value
}

extension ReconnectingConnection {
    /// Largest number of attempts of one operation.
    private static let attemptLimit = 5

    /// Runs statements that each are their own transaction and idempotent. After a lost connection
    /// all of them run again.
    func single<Value: Sendable>(
        until deadline: Deadline, _ body: (PostgresConnection) throws -> Value
    ) throws -> Value {
        try retrying(until: deadline, also: { _ in false }, body)
    }

    /// Runs the body in a transaction that is durable when this returns. Retries it after a
    /// conflict with another transaction or a lost connection.
    ///
    /// READ COMMITTED with explicit locks: each statement sees the transactions committed before
    /// it, so a decision first locks and then reads in a later statement. Locks are taken in the
    /// order link, session, chunks, file, owner, blob, blob_scrub, superseded_blob, garbage.
    /// Triggers lock the owner; a transaction that changes several locks them first, in the order
    /// of their text.
    ///
    /// If COMMIT is not acknowledged, the outcome is looked up by the transaction's number. If the
    /// server does not know it, the body runs again: every body detects an earlier success and
    /// returns accordingly. If the outcome cannot be found in time, the operation fails as
    /// `unavailable` although its changes may be committed; the caller retries.
    ///
    /// - Parameter constraint: A unique constraint whose violation means that another node was
    ///   faster. The body runs again and finds that node's row.
    func write<Value: Sendable>(
        until deadline: Deadline, retryingDuplicatesOf constraint: String? = nil,
        _ body: (PostgresConnection) throws -> Value
    ) throws -> Value {
        try retrying(
            until: deadline,
            also: { failure in constraint.map { failure.violatesUnique($0) } ?? false },
            { connection in try transaction(on: connection, body) })
    }

    private func retrying<Value: Sendable>(
        until deadline: Deadline, also isWorthAnotherTry: (PostgresFailure) -> Bool,
        _ attempt: (PostgresConnection) throws -> Value
    ) throws -> Value {
        for number in 1... {
            let connection = try connected(until: deadline)
            do {
                return try attempt(connection)
            } catch let failure as PostgresFailure {
                if failure.endsConnection { disconnect() }
                // A timeout would probably recur, and has used its time already.
                let isTransient =
                    failure.isConflict || isWorthAnotherTry(failure)
                    || (failure.endsConnection && failure.kind != .late)
                guard isTransient, number < Self.attemptLimit, !deadline.isOver else {
                    throw failure
                }
                noteRetry(after: failure)
                pause(upTo: .milliseconds(5 << number))
            }
        }
        preconditionFailure("the loop ends by returning or throwing")
    }

    private func transaction<Value: Sendable>(
        on connection: PostgresConnection, _ body: (PostgresConnection) throws -> Value
    ) throws -> Value {
        let life: String?
        let number: String
        do {
            life = try self.life(of: connection)
            number = try connection.begin(configuration)
        } catch {
            // A transaction that failed while it began would refuse all following statements.
            disconnect()
            throw error
        }
        let value: Value
        do {
            value = try body(connection)
        } catch {
            rollBack(connection, after: error)
            if let undone = error as? RolledBack<Value> { return undone.value }
            throw error
        }
        do {
            try connection.commit()
        } catch let failure where failure.leavesCommitUnknown {
            note(failure)
            disconnect()
            // The operation's time may be over; the lookup gets as much again.
            let limit = Deadline.after(configuration.timeout)
            guard try wasCommitted(number, in: life, until: limit) else { throw failure.toRetry }
            // It may be committed here but not on the synchronous standby. This commit waits for
            // all earlier ones.
            try connected(until: limit).commitSomething()
        }
        return value
    }

    /// Ends a transaction whose body threw.
    private func rollBack(_ connection: PostgresConnection, after error: any Error) {
        if let failure = error as? PostgresFailure, failure.endsConnection { return }
        do {
            try connection.script("ROLLBACK")
        } catch {
            // The server rolls back the transaction of a closed connection. The body's error
            // matters more.
            disconnect()
        }
    }

    /// Whether a transaction with an unacknowledged COMMIT was committed. False when it was rolled
    /// back or when the server does not know; then it runs again.
    ///
    /// - Throws: `unavailable` when the outcome could not be found in time.
    private func wasCommitted(
        _ number: String, in life: String?, until deadline: Deadline
    ) throws -> Bool {
        while true {
            let connection = try connected(until: deadline)
            do {
                guard let life, try Self.currentLife(connection) == life else { return false }
                var row = try connection.query(
                    "SELECT pg_xact_status($1::text::xid8)", [.text(number)]
                ).firstRow
                switch row?.optionalText() {
                case "committed": return true
                case "in progress": break
                default: return false
                }
            } catch let failure as PostgresFailure {
                if failure.endsConnection { disconnect() }
                guard !deadline.isOver else { throw failure }
            }
            guard !deadline.isOver else {
                throw MetadataError.unavailable("a commit got no answer and is still under way")
            }
            pause(upTo: .milliseconds(50))
        }
    }
}

extension PostgresConnection {
    /// Begins a transaction and returns its number, in one round trip. The limits end with the
    /// transaction, since behind a pooler the server's connection then serves another client.
    fileprivate func begin(_ configuration: PostgresConfiguration) throws -> String {
        let results = try script(
            """
            BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
            SET LOCAL statement_timeout = \(configuration.statementTimeout.milliseconds);
            SET LOCAL lock_timeout = \(configuration.lockTimeout.milliseconds);
            SET LOCAL idle_in_transaction_session_timeout = 15000;
            SELECT pg_current_xact_id()::text
            """)
        var row = results.last?.firstRow
        guard let number = row?.optionalText() else {
            throw PostgresFailure(kind: .nonsense, text: "a transaction has no number")
        }
        return number
    }

    /// Commits a transaction that changes nothing but is as durable as any other.
    fileprivate func commitSomething() throws {
        _ = try query("SELECT pg_logical_emit_message(true, 'kedge', '')")
    }

    fileprivate func commit() throws(PostgresFailure) {
        // A failed transaction ends with this tag and without an error.
        if try script("COMMIT").last?.commandTag == "ROLLBACK" {
            throw PostgresFailure(kind: .nonsense, text: "a failed transaction was committed")
        }
    }
}

extension PostgresFailure {
    /// Whether a COMMIT that failed like this may have succeeded. Either there was no answer, or
    /// the answer only reports the end of the connection. The server also sends that to a commit
    /// that waits for a standby.
    fileprivate var leavesCommitUnknown: Bool { endsConnection }

    /// A copy of the failure as a lost connection, so that the transaction runs again.
    fileprivate var toRetry: PostgresFailure { PostgresFailure(kind: .lost, text: text) }
}
