package import KedgeModel

extension TransferEngine {
    /// Returns the offset at which an append continues.
    package func contiguousOffset(of id: SessionID, owner: OwnerID) async throws -> Int64 {
        try await translating {
            try await registry.withSession(id, owner: owner) {
                try await $0.requireOpen()
                return await $0.ledger.contiguousOffset
            }
        }
    }

    /// Appends a body at the contiguous offset, divided into chunks.
    ///
    /// Bytes that arrive before an interruption count, unless the append has a checksum or may get
    /// one.
    ///
    /// - Returns: The new contiguous offset; every byte below it is durable.
    /// - Throws: `OFFSET_MISMATCH`, `FILE_TOO_LARGE`, `LENGTH_MISMATCH`, `SIZE_MISMATCH` when
    ///   another size was declared, `CHUNK_HASH_MISMATCH` for a wrong checksum, `CHUNK_CONFLICT`,
    ///   `UPLOAD_IS_FINAL`, and the errors of ``putChunk(_:to:owner:body:)``.
    package func append(
        _ put: AppendPut, to id: SessionID, owner: OwnerID, body: some ByteBody
    ) async throws -> Int64 {
        try await admittingWrite(
            of: body, to: id, owner: owner, isEvictable: put.isResumable && !put.countsAtItsEnd
        ) { place in
            try await registry.withSession(id, owner: owner) { session in
                try await session.requireOwnBytes()
                return try await sessionWriter.append(put, to: session, in: place, body: body)
            }
        }
    }
}
