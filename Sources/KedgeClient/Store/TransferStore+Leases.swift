internal import GRDB
package import KedgeModel

/// The result of a request for a lease.
package enum LeaseOutcome: Sendable {
    case acquired(Lease)
    /// Another living process, or another client in this one, runs the transfer.
    case held
    /// The transfer's state allows no run: paused by the user, failed, completed or canceled.
    case notRunnable(TransferState)
}

extension TransferStore {
    /// Takes the lease of a transfer, and moves one that a dead owner left behind back to `queued`.
    package func acquireLease(_ id: TransferID, for owner: LeaseOwner) async throws -> LeaseOutcome
    {
        let now = now()
        let owners = owners
        return try await transaction("acquire lease") { database in
            let row = try TransferRow.find(id, in: database)
            if let holder = row.owner, holder.token != owner.token,
                try owners.isAlive(holder, at: now)
            {
                return .held
            }
            var state = try row.state
            if state == row.direction.runningState {
                state = try state.applying(.wait, direction: row.direction)
            } else if state == .paused, try row.pauseReason?.endsWithNextRun == true {
                state = try state.applying(.resume, direction: row.direction)
            }
            guard state == .queued else { return .notRunnable(state) }
            try database.execute(
                sql: """
                    UPDATE \(row.direction.table) SET state = :state, pause_reason = NULL,
                        sign_in_needed = 0, owner_token = :token, owner_process = :process,
                        owner_heartbeat = :now, updated_at = max(updated_at, :now)
                    WHERE transfer_id = :id
                    """,
                arguments: [
                    "state": state.rawValue, "token": owner.token, "process": owner.processID,
                    "now": now.millisecondsSinceEpoch, "id": id.text,
                ])
            return .acquired(Lease(id: id, direction: row.direction, token: owner.token))
        }
    }

    /// Whether a living owner runs the transfer.
    package func hasLivingOwner(_ id: TransferID) async throws -> Bool {
        let now = now()
        let owners = owners
        return try await reading("look for owner") { database in
            guard let owner = try TransferRow.find(id, in: database).owner else { return false }
            return try owners.isAlive(owner, at: now)
        }
    }

    /// Returns the command that waits for the owner. Cheap enough to poll every few hundred
    /// milliseconds.
    ///
    /// - Throws: ``RunInterruption/leaseLost`` when the transfer has another owner now.
    package func command(_ lease: Lease) async throws -> TransferCommand? {
        try await reading("read control") { database -> TransferCommand? in
            let row = try TransferRow.find(lease.id, in: database)
            guard row.owner?.token == lease.token else { throw RunInterruption.leaseLost }
            return try row.command
        }
    }

    /// Renews the lease, so that other processes see that the owner is alive.
    ///
    /// - Throws: ``RunInterruption/leaseLost`` when the transfer has another owner now.
    package func heartbeat(_ lease: Lease) async throws {
        let now = now()
        try await transaction("heartbeat") { database in
            try database.execute(
                sql: """
                    UPDATE \(lease.direction.table) SET owner_heartbeat = ?
                    WHERE transfer_id = ? AND owner_token = ?
                    """,
                arguments: [now.millisecondsSinceEpoch, lease.id.text, lease.token])
            guard database.changesCount == 1 else { throw RunInterruption.leaseLost }
        }
    }

    /// Releases the lease. A transfer in its running state waits again.
    package func releaseLease(_ lease: Lease) async throws {
        try await update(lease, operation: "release lease") { change in
            if try change.row.state == change.row.direction.runningState {
                try change.apply(.wait)
            }
            change.releaseOwner()
        }
    }
}
