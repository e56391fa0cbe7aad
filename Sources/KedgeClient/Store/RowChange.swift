internal import Foundation
internal import GRDB
internal import KedgeModel

/// A change of one record, collected and written as one `UPDATE` when its transaction ends.
///
/// Column names are those of ``TransferColumn``; values are bound.
struct RowChange {
    let database: Database
    /// The record as it was when the transaction began.
    let row: TransferRow
    private var assignments: [TransferColumn: (any DatabaseValueConvertible)?] = [:]

    init(_ row: TransferRow, in database: Database) {
        self.row = row
        self.database = database
    }

    mutating func set(_ column: TransferColumn, _ value: (some DatabaseValueConvertible)?) {
        assignments[column] = .some(value)
    }

    mutating func set(_ column: TransferColumn, _ bytes: [UInt8]?) {
        assignments[column] = .some(bytes.map { Data($0) })
    }

    mutating func clear(_ columns: TransferColumn...) {
        for column in columns { assignments[column] = .some(nil) }
    }

    /// Applies an event, by the rules of the state machine only.
    ///
    /// - Throws: `IllegalTransition`.
    mutating func apply(_ event: TransferEvent) throws {
        let state = try row.state.applying(event, direction: row.direction)
        set(.state, state.rawValue)
        if state != .paused {
            clear(.pauseReason)
            set(.signInNeeded, false)
        } else if case .pause(let reason) = event {
            // The column of reasons takes no newer one.
            let isSignIn = reason == .signInNeeded
            set(.pauseReason, (isSignIn ? PauseReason.constraint : reason).rawValue)
            set(.signInNeeded, isSignIn)
        }
    }

    /// Leaves a command for the owner; nil withdraws the one that waits.
    mutating func setCommand(_ command: TransferCommand?) {
        set(.control, command?.rawValue ?? TransferRow.noCommand)
    }

    mutating func setError(
        _ code: ErrorCode, _ message: String, attempt: FailedAttempt? = nil
    ) {
        set(.lastErrorCode, code.rawValue)
        set(.lastErrorMessage, message)
        set(.attemptCause, attempt?.cause?.rawValue)
        set(.attemptHost, attempt?.host)
        set(.attemptPort, attempt?.port)
        set(.attemptNumber, attempt?.attempt)
        set(.nextAttemptAt, attempt?.nextAttemptAt?.millisecondsSinceEpoch)
    }

    mutating func clearError() {
        clear(.lastErrorCode, .lastErrorMessage, .attemptCause, .attemptHost)
        clear(.attemptPort, .attemptNumber, .nextAttemptAt)
    }

    mutating func setAnswer(_ answer: ServerAnswer?) {
        guard let answer else { return }
        set(.lastServerStatus, answer.status)
        set(.lastRequestID, answer.requestID)
    }

    mutating func setHash(_ hash: SavedHash?) {
        // The state of no bytes is useless, and the schema requires it to be absent.
        let useful = hash.flatMap { $0.offsetBytes > 0 ? $0 : nil }
        set(.hashState, useful?.state)
        set(.hashOffset, useful?.offsetBytes ?? 0)
    }

    mutating func releaseOwner() {
        clear(.ownerToken, .ownerProcess, .ownerHeartbeat)
    }

    /// Sets one bit of a chunk set without parsing the others.
    mutating func insertChunk(_ index: Int, into column: TransferColumn) {
        var bytes = row.bytes(column) ?? []
        let place = index / 8
        if bytes.count <= place {
            bytes.append(contentsOf: repeatElement(0, count: place + 1 - bytes.count))
        }
        bytes[place] |= 1 << UInt8(index % 8)
        set(column, bytes)
    }

    /// Adds tries of a chunk to its count.
    func countAttempts(_ count: Int, ofChunk index: Int, in id: TransferID) throws {
        guard count > 0 else { return }
        try database.execute(
            sql: """
                INSERT INTO transfer_chunk_attempt (transfer_id, chunk_index, attempts)
                VALUES (:id, :index, :count)
                ON CONFLICT (transfer_id, chunk_index) DO UPDATE SET attempts = attempts + :count
                """,
            arguments: ["id": id.text, "index": index, "count": count])
    }

    func write(_ id: TransferID, at now: Timestamp) throws {
        let columns = assignments.keys.map(\.rawValue).sorted()
        let list = columns.map { "\($0) = :\($0), " }.joined()
        var arguments: [String: (any DatabaseValueConvertible)?] = [:]
        for (column, value) in assignments { arguments[column.rawValue] = .some(value) }
        arguments["id"] = id.text
        arguments["now"] = now.millisecondsSinceEpoch
        try database.execute(
            sql: """
                UPDATE \(row.direction.table) SET \(list)updated_at = max(updated_at, :now)
                WHERE transfer_id = :id
                """,
            arguments: StatementArguments(arguments))
    }
}

extension TransferStore {
    /// Changes the record of a transfer that the caller runs.
    ///
    /// - Throws: ``RunInterruption/leaseLost`` when the transfer has another owner now; nothing is
    ///   changed then.
    func update<Result: Sendable>(
        _ lease: Lease, operation: String,
        _ body: @escaping @Sendable (inout RowChange) throws -> Result
    ) async throws -> Result {
        let now = now()
        return try await transaction(operation) { database in
            let row = try TransferRow.find(lease.id, in: database)
            guard row.owner?.token == lease.token else { throw RunInterruption.leaseLost }
            var change = RowChange(row, in: database)
            let result = try body(&change)
            try change.write(lease.id, at: now)
            return result
        }
    }
}
