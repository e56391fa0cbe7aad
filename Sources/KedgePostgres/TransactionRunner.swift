internal import KedgeEngine

/// Ends a transaction without changes and still answers.
struct Undone<Value: Sendable>: Error {
    let value: Value
}

extension DatabaseLink {
    /// Most conflicts with other transactions, or lost connections, that one operation puts up
    /// with.
    private static let attemptLimit = 5

    /// Runs statements that each are a transaction of their own and may safely run twice. A lost
    /// connection is replaced and everything done again.
    func single<Value: Sendable>(
        until deadline: Deadline, _ body: (PostgresConnection) throws -> Value
    ) throws -> Value {
        try retrying(until: deadline, also: { _ in false }, body)
    }

    /// Runs the body in a transaction that is durable when this returns, and again when it lost
    /// against another one, or the connection broke.
    ///
    /// READ COMMITTED with explicit locks: each statement of the body sees what others committed
    /// before it, so whoever decides something locks first and looks in a later statement. Locks
    /// are taken in the order session, chunks, blob, blob_scrub, superseded_blob, garbage.
    ///
    /// When the answer to COMMIT does not come, the outcome is asked for under the number of the
    /// transaction. Where the server cannot say, the body runs again: every body is written so that
    /// a second run after a success finds that and answers accordingly. When even that cannot be
    /// found out in time, the operation fails as unavailable, and what it did may be there; the
    /// caller asks again.
    ///
    /// - Parameter constraint: A unique constraint whose violation means that another node was
    ///   faster: the body runs again and finds that node's row.
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
                // One that came too late would do so again; it has cost its time already.
                let isTransient =
                    failure.isConflict || isWorthAnotherTry(failure)
                    || (failure.endsConnection && failure.kind != .late)
                guard isTransient, number < Self.attemptLimit, !deadline.isOver else {
                    throw failure
                }
                note(failure)
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
            // A transaction that failed half-way into its beginning would refuse everything that follows.
            disconnect()
            throw error
        }
        let value: Value
        do {
            value = try body(connection)
        } catch {
            rollBack(connection, after: error)
            if let undone = error as? Undone<Value> { return undone.value }
            throw error
        }
        do {
            try connection.commit()
        } catch let failure where failure.leavesCommitUnknown {
            note(failure)
            disconnect()
            // The time of the operation may be over; finding out what it did gets as much again.
            let limit = Deadline.after(configuration.patience)
            guard try wasCommitted(number, in: life, until: limit) else { throw failure.toRetry }
            // It may be committed here and not on the standby it waited for. A commit waits for all before it.
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
            // The server rolls back what its client left behind; the body's own error is what
            // matters.
            disconnect()
        }
    }

    /// What became of a transaction whose COMMIT was not answered. False when it was rolled back,
    /// and when nobody can say: then it runs again.
    ///
    /// - Throws: `unavailable` when that could not be found out in time.
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
                throw MetadataError.unavailable("a commit was not answered and is still under way")
            }
            pause(upTo: .milliseconds(50))
        }
    }
}

extension PostgresConnection {
    /// Begins a transaction; returns its number. One round trip, with limits that end with the
    /// transaction, because behind a pooler the server's connection goes to somebody else
    /// afterwards.
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

    /// A commit that changes nothing but is as durable as any.
    fileprivate func commitSomething() throws {
        _ = try query("SELECT pg_logical_emit_message(true, 'kedge', '')")
    }

    fileprivate func commit() throws(PostgresFailure) {
        // A transaction that failed before ends with this word and no error.
        if try script("COMMIT").last?.commandTag == "ROLLBACK" {
            throw PostgresFailure(kind: .nonsense, text: "a failed transaction was committed")
        }
    }
}

extension PostgresFailure {
    /// True when a COMMIT that failed so may have happened: no answer, or one that only says that
    /// the connection ends, which the server also sends to those that wait for a standby after the
    /// commit.
    fileprivate var leavesCommitUnknown: Bool { endsConnection }

    /// The same as the failure of a connection that is replaced: the transaction runs again.
    fileprivate var toRetry: PostgresFailure { PostgresFailure(kind: .lost, text: text) }
}
