internal import Foundation
internal import GRDB
package import KedgeModel

extension TransferStore {
    /// Returns a transfer of either direction.
    package func record(_ id: TransferID) async throws -> TransferRecord {
        try await reading("read transfer") { database in
            try Self.record(try TransferRow.find(id, in: database))
        }
    }

    /// Returns all transfers, oldest first.
    package func records() async throws -> [TransferRecord] {
        try await reading("list transfers") { database in
            var records: [TransferRecord] = []
            for direction in [TransferDirection.upload, .download] {
                let sql = "\(direction.selection) ORDER BY created_at, transfer_id"
                for row in try Row.fetchAll(database, sql: sql) {
                    records.append(try Self.record(TransferRow(row, direction: direction)))
                }
            }
            return records.sorted { $0.status.createdAt < $1.status.createdAt }
        }
    }

    /// Returns the number of tries of each chunk.
    package func attempts(_ id: TransferID) async throws -> [Int: Int] {
        try await reading("read attempts") { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT chunk_index, attempts FROM transfer_chunk_attempt
                    WHERE transfer_id = ?
                    """,
                arguments: [id.text])
            var attempts: [Int: Int] = [:]
            for row in rows {
                let columns = TransferRow(row, direction: .upload)
                let index = try columns.requiredInt(.chunkIndex)
                attempts[index] = try columns.requiredInt(.attempts)
            }
            return attempts
        }
    }

    /// Returns the number of tries of all chunks together.
    package func attemptCount(_ id: TransferID) async throws -> Int {
        try await reading("read attempts") { database in
            let sql = "SELECT sum(attempts) FROM transfer_chunk_attempt WHERE transfer_id = ?"
            return try Int.fetchOne(database, sql: sql, arguments: [id.text]) ?? 0
        }
    }

    /// Carries out a command, or leaves it for the process that runs the transfer, which acts
    /// within a second.
    ///
    /// - Returns: The earlier record, for the cleanup; nil if the command is left for the owner.
    /// - Throws: `ILLEGAL_TRANSITION` if the transfer's state does not allow the command.
    package func request(
        _ command: TransferCommand, of id: TransferID
    ) async throws -> TransferRecord? {
        let now = now()
        let owners = owners
        return try await transaction("request \(command.rawValue)") { database -> TransferRecord? in
            let row = try TransferRow.find(id, in: database)
            let previously = try Self.record(row)
            var change = RowChange(row, in: database)
            if let holder = row.owner, try owners.isAlive(holder, at: now) {
                // Checked here as well, so that the caller gets the error, not the owner.
                if let event = command.event {
                    _ = try row.state.applying(event, direction: row.direction)
                }
                change.setCommand(command == .resume ? nil : command)
                try change.write(id, at: now)
                return nil
            }
            try Self.apply(command, to: &change, previously: previously)
            change.setCommand(nil)
            change.releaseOwner()
            try change.write(id, at: now)
            return previously
        }
    }

    private static func apply(
        _ command: TransferCommand, to change: inout RowChange, previously: TransferRecord
    ) throws {
        switch command {
        case .pause:
            try change.apply(.pause(.user))
        case .cancel:
            try change.apply(.cancel)
            change.forgetSecrets()
        case .resume:
            // A killed process leaves a running state without a living owner.
            try change.apply(previously.isOrphaned ? .wait : .resume)
            if previously.status.pauseReason == .signInNeeded { change.clearError() }
        case .retry, .restart:
            try requireNoSuccessor(of: previously, in: change.database)
            try requireWholeURL(of: previously)
            try change.apply(previously.isOrphaned ? .wait : .retry)
            change.clearError()
            change.set(.integrityFailureCount, 0)
            if command == .restart { try restart(&change) }
        }
    }

    /// Discards everything that was transferred. The caller removes session and temporary file.
    static func restart(_ change: inout RowChange) throws {
        switch change.row.direction {
        case .upload:
            try change.discardDigests()
            change.clear(.sessionID, .adoptSessionID, .expiresAt, .maxConcurrentChunks)
            change.clear(.givenSessionID, .fileHash, .uploadURL, .interopVersion, .sessionLink)
            change.set(.uploadedChunks, [])
            change.set(.lastGoodByteOffset, 0)
            change.set(.idempotencyKey, TransferID.random().text)
            change.setHash(nil)
        case .download:
            clearProgress(&change)
            change.clear(.tempInode)
            change.set(.remoteChangeCount, 0)
        }
    }

    /// Restarts a transfer that the caller runs; see ``TransferCommand/restart``.
    package func restart(_ lease: Lease) async throws {
        try await update(lease, operation: "restart") { change in
            if try change.row.state == change.row.direction.runningState {
                try change.apply(.wait)
            }
            change.setCommand(nil)
            change.set(.integrityFailureCount, 0)
            change.clearError()
            try Self.restart(&change)
        }
    }

    /// Throws if another transfer has taken the place of a canceled one.
    private static func requireNoSuccessor(
        of record: TransferRecord, in database: Database
    ) throws {
        let sql: String
        let arguments: StatementArguments
        let id = record.status.id.text
        switch record {
        case .upload(let upload):
            sql = """
                SELECT 1 FROM upload_transfer WHERE server_url = ? AND path = ? AND dialect = ?
                    AND transfer_id <> ? AND state NOT IN ('completed', 'canceled')
                """
            arguments = [upload.status.serverURL, upload.path, upload.uploadProtocol.rawValue, id]
        case .download(let download):
            sql = """
                SELECT 1 FROM download_transfer WHERE destination_path = ?
                    AND transfer_id <> ? AND state NOT IN ('completed', 'canceled')
                """
            arguments = [download.destinationPath, id]
        }
        guard try Int.fetchOne(database, sql: sql, arguments: arguments) == nil else {
            throw TransferError(
                .illegalTransition, operation: "retry", resource: id,
                explanation: "Another unfinished transfer has replaced this one.")
        }
    }

    /// Throws if the record lacks part of the URL, or the link: the record of a canceled transfer
    /// keeps no secrets.
    private static func requireWholeURL(of record: TransferRecord) throws {
        if case .upload(let upload) = record, upload.isLinkRedacted {
            throw TransferError(
                .illegalTransition, operation: "retry", resource: upload.status.id.text,
                explanation: "A canceled transfer does not keep its link; start the upload again"
                    + " with a link.")
        }
        guard case .download(let download) = record, download.isURLRedacted else { return }
        throw TransferError(
            .illegalTransition, operation: "retry", resource: download.status.id.text,
            explanation: "A canceled transfer does not keep the password or query of its URL;"
                + " start the download again with the URL.")
    }

    private static func record(_ row: TransferRow) throws -> TransferRecord {
        switch row.direction {
        case .upload: .upload(try UploadTransfer(row))
        case .download: .download(try DownloadTransfer(row))
        }
    }
}

extension SHA256Digest {
    var blob: Data { Data(bytes) }
}
