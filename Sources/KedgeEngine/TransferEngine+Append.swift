package import KedgeModel

extension TransferEngine {
    /// Returns the offset at which an append continues.
    package func contiguousOffset(of id: SessionID, owner: OwnerID) async throws -> Int64 {
        try await uploads.contiguousOffset(of: id, owner: owner)
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
        try await uploads.append(put, to: id, owner: owner, body: body)
    }
}
