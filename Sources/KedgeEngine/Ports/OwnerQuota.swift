package import KedgeModel

/// Limits of an owner; zero is no limit.
package struct QuotaLimits: Hashable, Sendable {
    /// Maximum of the stored and the reserved bytes together.
    package var storedBytes: Int64
    /// Maximum number of sessions that are open or finalizing.
    package var openSessions: Int64
    /// Maximum size of one file.
    package var fileBytes: Int64

    package init(storedBytes: Int64 = 0, openSessions: Int64 = 0, fileBytes: Int64 = 0) {
        self.storedBytes = storedBytes
        self.openSessions = openSessions
        self.fileBytes = fileBytes
    }

    package static let none = QuotaLimits()
}

/// A change that was refused, because an owner would exceed a limit.
package struct QuotaRefusal: Hashable, Sendable {
    /// The limit that would be exceeded. The names are values of a metric's label.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case storedBytes = "stored_bytes"
        case openSessions = "open_sessions"
        case fileBytes = "file_bytes"
    }

    package var kind: Kind
    package var limit: Int64
    /// Bytes of the owner's files, without the refused change.
    package var storedBytes: Int64
    /// Bytes reserved for the owner's unfinished sessions, without the refused change.
    package var reservedBytes: Int64

    package init(_ kind: Kind, limit: Int64, storedBytes: Int64, reservedBytes: Int64) {
        self.kind = kind
        self.limit = limit
        self.storedBytes = storedBytes
        self.reservedBytes = reservedBytes
    }
}

/// The sums of an owner and the limits that apply to them, as one transaction sees them.
///
/// All stores decide with this type. A transaction holds the owner's row from here to its end, so
/// no other one can use the same room.
package struct OwnerQuota: Hashable, Sendable {
    package var limits: QuotaLimits
    /// Bytes of the files that are not deleted. Equal files count each: a quota must not show which
    /// bytes other owners have stored.
    package var storedBytes: Int64
    /// Bytes reserved for sessions that are open or finalizing.
    package var reservedBytes: Int64
    /// Number of these sessions.
    package var openSessionCount: Int64

    package init(
        limits: QuotaLimits, storedBytes: Int64 = 0, reservedBytes: Int64 = 0,
        openSessionCount: Int64 = 0
    ) {
        self.limits = limits
        self.storedBytes = storedBytes
        self.reservedBytes = reservedBytes
        self.openSessionCount = openSessionCount
    }

    /// Bytes that a session of unknown size reserves at once, so that few of its commits change the
    /// owner's row.
    package static let reservationStep: Int64 = 64 << 20
}

extension OwnerQuota {
    /// Checks sums that include a new session.
    ///
    /// - Parameter byteCount: The bytes reserved for it.
    /// - Throws: ``MetadataError/quotaExceeded(_:)``
    package func requireRoom(forNewSessionOf byteCount: Int64) throws(MetadataError) {
        if limits.openSessions > 0, openSessionCount > limits.openSessions {
            throw refusal(.openSessions, limit: limits.openSessions, without: byteCount)
        }
        try requireRoom(forFileOf: byteCount, growth: byteCount)
    }

    /// Checks sums that include a larger reservation of a session.
    ///
    /// - Parameters:
    ///   - byteCount: The bytes that are reserved for it now.
    ///   - growth: How many of them are new; a smaller reservation needs no room.
    /// - Throws: ``MetadataError/quotaExceeded(_:)``
    package func requireRoom(
        forFileOf byteCount: Int64, growth: Int64
    ) throws(MetadataError) {
        guard growth > 0 else { return }
        if limits.fileBytes > 0, byteCount > limits.fileBytes {
            throw refusal(.fileBytes, limit: limits.fileBytes, without: growth)
        }
        // The difference of two numbers that are not negative does not overflow.
        if limits.storedBytes > 0, storedBytes > limits.storedBytes - reservedBytes {
            throw refusal(.storedBytes, limit: limits.storedBytes, without: growth)
        }
    }

    /// Returns the reservation of a session of unknown size that has received bytes beyond its
    /// present one. The sums do not include it yet.
    ///
    /// - Parameters:
    ///   - end: Offset after the last received byte.
    ///   - reserved: The present reservation, less than `end`.
    ///   - maxByteCount: Maximum size of the session's file; nil for none. More than that would be
    ///     room that other uploads of the owner lack.
    /// - Throws: ``MetadataError/quotaExceeded(_:)``
    package func reservation(
        covering end: Int64, beyond reserved: Int64, upTo maxByteCount: Int64? = nil
    ) throws(MetadataError) -> Int64 {
        let needed = end - reserved
        let step = min(Self.reservationStep, (maxByteCount ?? .max) - reserved)
        var growth = max(needed, step)
        if limits.fileBytes > 0 {
            guard end <= limits.fileBytes else {
                throw refusal(.fileBytes, limit: limits.fileBytes, without: 0)
            }
            // Not beyond the largest file: a size that is declared later would not be compared with
            // that limit, because the session would not grow.
            growth = min(growth, limits.fileBytes - reserved)
        }
        if limits.storedBytes > 0 {
            let left = max(0, max(0, limits.storedBytes - storedBytes) - reservedBytes)
            guard needed <= left else {
                throw refusal(.storedBytes, limit: limits.storedBytes, without: 0)
            }
            growth = min(growth, left)
        }
        return reserved + growth
    }

    private func refusal(
        _ kind: QuotaRefusal.Kind, limit: Int64, without growth: Int64
    ) -> MetadataError {
        .quotaExceeded(
            QuotaRefusal(
                kind, limit: limit, storedBytes: storedBytes,
                reservedBytes: max(0, reservedBytes - growth)))
    }
}

/// An owner whose sums differ from its sessions and files.
package struct QuotaDrift: Hashable, Sendable {
    package var owner: OwnerID
    /// The sums as they are kept; nil without a row of the owner.
    package var kept: Sums?
    /// The sums of the sessions and files.
    package var actual: Sums

    package struct Sums: Hashable, Sendable {
        package var storedBytes: Int64
        package var reservedBytes: Int64
        package var openSessionCount: Int64

        package init(storedBytes: Int64, reservedBytes: Int64, openSessionCount: Int64) {
            self.storedBytes = storedBytes
            self.reservedBytes = reservedBytes
            self.openSessionCount = openSessionCount
        }
    }

    package init(owner: OwnerID, kept: Sums?, actual: Sums) {
        self.owner = owner
        self.kept = kept
        self.actual = actual
    }
}

/// Corrects the sums of owners.
package protocol QuotaRepair: Sendable {
    /// Sets the sums of an owner to those of its sessions and files. Running nodes may change them
    /// meanwhile.
    func repairQuota(of owner: OwnerID) async throws
}
