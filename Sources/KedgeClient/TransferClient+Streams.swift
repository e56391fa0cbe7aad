internal import KedgeFiles
public import KedgeModel

extension TransferClient {
    /// Bytes that are read before they are sent. Up to two such buffers are in memory.
    private static let streamBufferByteCount = 8 << 20

    /// Uploads bytes whose number is not known beforehand, by IETF resumable uploads.
    ///
    /// A broken connection continues after the last byte that the server has: bytes stay in memory
    /// until the server confirms that they are durable, at most 16 MiB. The upload has no record
    /// and ends with the call: after any failure, and when the task is canceled, it is removed from
    /// the server.
    ///
    /// - Parameters:
    ///   - options: Name and type of the file, and what the stream must be.
    ///   - onProgress: Called with the number of bytes that are durable on the server.
    ///   - onWait: Called with the reason before the next attempt after a failure.
    ///   - confirmEnd: Called after the last byte, before the server makes the file; an error that
    ///     it throws removes the upload.
    ///   - read: Fills the front of the buffer and returns the number of bytes; 0 at the end. May
    ///     block.
    /// A call of `read` that blocks does not delay the end of a failed or canceled upload; it may
    /// still be blocked afterwards.
    ///
    /// - Throws: `FILE_TRUNCATED` for fewer bytes than expected, `SIZE_MISMATCH` for more,
    ///   `INTEGRITY_MISMATCH` for another SHA-256; other `TransferError`s; `CancellationError`; any
    ///   error of the closures.
    public func uploadStream(
        _ options: StreamUploadOptions,
        onProgress: @escaping @Sendable (Int64) -> Void = { _ in },
        onWait: @escaping @Sendable (String) -> Void = { _ in },
        confirmEnd: @escaping @Sendable () async throws -> Void = {},
        read: @escaping @Sendable (UnsafeMutableRawBufferPointer) throws -> Int
    ) async throws -> StreamResult {
        let api = ServerAPI(
            baseURL: "\(options.link?.serverURL ?? serverURL)/files",
            token: options.link?.text ?? configuration.token,
            tokens: options.link == nil ? tokens : nil, transport: api.exchange.transport)
        let uploading = StreamUpload(
            client: api.client(.resumableUpload), options: options, onProgress: onProgress,
            retry: StreamRetry(
                configuration, environment, isKnown: try await isServerKnown, onWait: onWait))
        let pool = pool
        do {
            return try await uploading.run(confirmEnd: confirmEnd) {
                try await pool.run {
                    var bytes = [UInt8](repeating: 0, count: Self.streamBufferByteCount)
                    var count = 0
                    try bytes.withUnsafeMutableBytes { buffer in
                        while count < buffer.count {
                            let free = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
                            let readCount = try read(free)
                            guard readCount > 0 else { break }
                            count += readCount
                        }
                    }
                    bytes.removeLast(bytes.count - count)
                    return bytes
                }
            }
        } catch let failure as RequestFailure {
            throw failure.asTransferError
        }
    }

    /// Downloads a file in the order of its bytes, for a pipe.
    ///
    /// Each chunk whose SHA-256 the server announces is verified before its first byte is written,
    /// and fetched again if it is wrong; up to 32 MiB of chunks, or one chunk, are in memory. From
    /// servers without such digests, bytes are written as they arrive, and only the SHA-256 of the
    /// whole file can be verified, at the end. The download has no record: it cannot be resumed
    /// after its end.
    ///
    /// - Parameters:
    ///   - reference: The file on the server, or a URL.
    ///   - expectedSHA256: SHA-256 that the file must have; takes precedence over the server's.
    ///   - onStart: Called once with the size, if known, and whether each chunk is verified before
    ///     it is written.
    ///   - onWait: Called with the reason before the next attempt after a failure.
    ///   - write: Writes the next bytes. May block.
    /// - Throws: `CHUNK_HASH_MISMATCH`, `INTEGRITY_MISMATCH`, `REMOTE_CHANGED`, other
    ///   `TransferError`s, `CancellationError`, any error of `write`. What was written before an
    ///   error without chunk digests may be wrong.
    public func downloadStream(
        _ reference: RemoteReference, expectedSHA256: SHA256Digest? = nil,
        onStart: @escaping @Sendable (Int64?, Bool) -> Void = { _, _ in },
        onWait: @escaping @Sendable (String) -> Void = { _ in },
        write: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void
    ) async throws -> StreamResult {
        let server = home(of: reference)
        let reference = try normalized(reference)
        let fetcher = FileFetcher(api: api(for: reference, at: server))
        var retry = StreamRetry(
            configuration, environment, isKnown: try await store.isKnownServer(server),
            onWait: onWait)
        do {
            let file = try await retry { try await fetcher.inspect(reference) }.value
            let download = StreamDownload(
                reference: reference, file: file, fetcher: fetcher, retry: retry,
                connectionCount: configuration.connections ?? ConcurrencyWindow.standard,
                expected: expectedSHA256 ?? file.sha256, pool: { try await self.pool.run($0) },
                write: write)
            onStart(file.byteCount, download.verifiesChunks)
            return try await download.run()
        } catch let failure as RequestFailure {
            throw failure.asTransferError
        }
    }
}
