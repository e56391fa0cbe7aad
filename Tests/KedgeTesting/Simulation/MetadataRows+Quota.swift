internal import KedgeEngine
internal import KedgeModel

// The sums of owners are computed from the rows each time, so they cannot be wrong. No owner has
// limits of its own here.
extension MetadataRows {
    /// Returns the sums of an owner with the limits.
    func quota(of owner: OwnerID, within limits: QuotaLimits) -> OwnerQuota {
        let open = sessions.values.filter {
            $0.record.owner == owner && [.open, .finalizing].contains($0.record.state)
        }
        let stored = files.values.map(\.record).filter {
            $0.owner == owner && $0.deletedAt == nil
        }
        return OwnerQuota(
            limits: limits, storedBytes: stored.reduce(0) { $0 + $1.byteCount },
            reservedBytes: open.reduce(0) { $0 + $1.reservation },
            openSessionCount: Int64(open.count))
    }

    /// Returns the bytes that a new session of unknown size reserves at first; nil for none.
    func firstReservation(of record: SessionRecord, adopting old: Session?) -> Int64? {
        guard record.fileSize == nil else { return nil }
        if let old { return old.reservedBytes }
        let sources = (record.sourceIDs ?? []).compactMap { sessions[$0] }
        let sizes = sources.filter { $0.record.owner == record.owner }.compactMap(\.record.fileSize)
        return sizes.isEmpty ? nil : sizes.reduce(0, +)
    }

    /// Reserves more for a session of unknown size whose bytes now reach to `end`.
    mutating func reserve(
        upTo end: Int64, for id: SessionID, within limits: QuotaLimits
    ) throws {
        guard let session = sessions[id], session.record.fileSize == nil,
            end > session.reservation
        else { return }
        let reserved = try quota(of: session.record.owner, within: limits)
            .reservation(
                covering: end, beyond: session.reservation, upTo: session.record.maxByteCount)
        sessions[id]?.reservedBytes = reserved
    }

    /// Ends the reservations of the open partial uploads of a final upload.
    mutating func release(sourcesOf record: SessionRecord, at now: Timestamp) {
        for id in record.sourceIDs ?? [] {
            guard let source = sessions[id], source.record.owner == record.owner,
                source.record.state == .open, source.job == nil
            else { continue }
            sessions[id]?.reservedBytes = 0
            sessions[id]?.record.expiresAt = min(
                source.record.expiresAt, now.advanced(by: FinalUpload.sourceLifetime))
        }
    }
}

extension MetadataRows.Session {
    /// Bytes reserved for the session while it is open or finalizing.
    var reservation: Int64 { reservedBytes ?? record.fileSize ?? 0 }

    /// Returns the offset after the first bytes of a chunk.
    func end(of index: Int, _ byteCount: Int64) -> Int64 {
        Int64(index) * record.chunkSize + byteCount
    }
}
