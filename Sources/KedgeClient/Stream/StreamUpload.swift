internal import KedgeHash
public import KedgeModel
internal import KedgeTransport

/// Options of ``TransferClient/uploadStream(_:onProgress:onWait:confirmEnd:read:)``.
public struct StreamUploadOptions: Sendable {
    /// File name on the server.
    public var fileName: String
    /// MIME type; nil to guess it from the name.
    public var mimeType: String?
    /// Number of bytes that the stream must have; nil for any.
    public var expectedSize: Int64?
    /// SHA-256 that the stream must have; nil for any.
    public var expectedSHA256: SHA256Digest?
    /// Link that permits the upload, in place of a token; nil for none.
    public var link: ServiceLink?

    /// Creates options.
    public init(
        fileName: String, mimeType: String? = nil, expectedSize: Int64? = nil,
        expectedSHA256: SHA256Digest? = nil
    ) {
        self.fileName = fileName
        self.mimeType = mimeType
        self.expectedSize = expectedSize
        self.expectedSHA256 = expectedSHA256
    }
}

/// The file that became of a stream.
public struct StreamResult: Sendable, Hashable {
    /// File on the server; nil if the server reported none.
    public let fileID: FileID?
    /// Number of bytes.
    public let byteCount: Int64
    /// SHA-256 of the bytes.
    public let sha256: SHA256Digest
    /// How the bytes were verified.
    public let verification: Verification
}

/// One upload of a stream.
struct StreamUpload {
    let client: any SequentialUploadClient
    let options: StreamUploadOptions
    let onProgress: @Sendable (Int64) -> Void
    let retry: StreamRetry

    /// - Parameter nextBytes: Returns a full buffer, or at the end of the stream a shorter one.
    func run(
        confirmEnd: @Sendable () async throws -> Void,
        _ nextBytes: @escaping @Sendable () async throws -> [UInt8]
    ) async throws -> StreamResult {
        let name = FileName.sanitized(options.fileName)
        let description = UploadDescription(
            fileName: name, mimeType: options.mimeType ?? MIMEType.guess(fileName: name),
            byteCount: nil, digest: options.expectedSHA256, metadata: [:])
        var retry = retry
        let client = client
        let created = try await retry { try await client.create(description) }
        do {
            return try await send(to: created.address, confirmEnd: confirmEnd, nextBytes)
        } catch {
            let isRemoved = await remove(created.address)
            let failure = (error as? RequestFailure)?.asTransferError ?? error
            // A canceled task and errors of the closures speak for themselves.
            guard let known = failure as? TransferError else { throw failure }
            throw TransferError(
                known.code, operation: known.operation, resource: known.resource,
                explanation: (known.explanation ?? known.code.facts.sentence)
                    + (isRemoved ? Self.removedText : Self.leftText), cause: known.cause)
        }
    }

    private static let removedText = " The upload was removed."
    private static let leftText = " The upload could not be removed; it may be on the server."

    private func send(
        to address: UploadAddress, confirmEnd: @Sendable () async throws -> Void,
        _ nextBytes: @escaping @Sendable () async throws -> [UInt8]
    ) async throws -> StreamResult {
        var sender = StreamSender(client: client, address: address, retry: retry)
        var hasher = SHA256Hasher()
        var bytes = try await UninterruptibleRead(nextBytes).bytes
        while !bytes.isEmpty {
            let current = bytes
            // Read ahead while these bytes are on their way.
            let next = UninterruptibleRead(nextBytes)
            hasher.update(current)
            if let most = options.expectedSize, hasher.byteCount > most {
                throw refusal(.sizeMismatch, "The input has more than the \(most) bytes expected.")
            }
            _ = try await sender.send(current, isLast: false)
            onProgress(sender.offset)
            bytes = try await next.bytes
        }
        let digest = hasher.digest()
        if let size = options.expectedSize, hasher.byteCount < size {
            throw refusal(
                .fileTruncated,
                "The input ended after \(hasher.byteCount) of the \(size) bytes expected.")
        }
        if let expected = options.expectedSHA256, expected != digest {
            throw refusal(
                .integrityMismatch,
                "The input has the SHA-256 \(digest), not the one expected, \(expected).")
        }
        try await confirmEnd()
        let state = try await sender.send([], isLast: true)
        let reported = state.reportedFile
        guard reported.digest.map({ $0 == digest }) ?? true else {
            throw refusal(.integrityMismatch, "The server has another SHA-256 than was sent.")
        }
        return StreamResult(
            fileID: reported.file, byteCount: hasher.byteCount, sha256: digest,
            verification: reported.digest == nil ? .unverified : .sha256)
    }

    private func refusal(_ code: ErrorCode, _ explanation: String) -> TransferError {
        TransferError(
            code, operation: "upload", explanation: explanation)
    }

    /// Removes the upload, also when the task is canceled. Best effort: the server removes
    /// unfinished uploads after a while.
    ///
    /// - Returns: Whether the server confirmed it.
    private func remove(_ address: UploadAddress) async -> Bool {
        let client = client
        // Awaited here: only the cancellation must not reach the request.
        return await Task {
            do {
                try await client.remove(address)
                return true
            } catch {
                return false
            }
        }.value
    }
}

/// Sends the bytes of one upload in order.
private struct StreamSender {
    let client: any SequentialUploadClient
    let address: UploadAddress
    var retry: StreamRetry
    /// Number of bytes that the server has.
    private(set) var offset: Int64 = 0
    private var bodySize = AdaptiveBodySize(capabilities: ServerCapabilities())

    init(client: any SequentialUploadClient, address: UploadAddress, retry: StreamRetry) {
        self.client = client
        self.address = address
        self.retry = retry
    }

    /// Sends bytes that begin at ``offset``; returns once the server has all of them.
    mutating func send(_ bytes: [UInt8], isLast: Bool) async throws -> UploadState {
        let start = offset
        let end = start + Int64(bytes.count)
        let (client, address) = (client, address)
        while true {
            let range = bodySize.range(from: offset, ofSize: end)
            let completes = isLast && range.end == end
            let failure: RequestFailure
            do {
                let body = Array(bytes[Int(range.start - start)..<Int(range.end - start)])
                let part = AppendBody(
                    range: range, body: .bytes(body),
                    checksum: body.isEmpty || !bodySize.carriesChecksum
                        ? nil
                        : BodyChecksum(
                            algorithm: .sha256, bytes: SHA256Hasher.digest(of: body).bytes),
                    isLast: completes)
                let began = ContinuousClock.now
                let state = try await client.append(part, to: address) { _ in }
                bodySize.recordSuccess(
                    in: began.duration(to: .now), byteCount: range.byteCount)
                if let capabilities = state.capabilities { bodySize.adopt(capabilities) }
                let before = offset
                if try note(state, from: start, to: end, isLast: isLast) { return state }
                guard offset == before else { continue }
                failure = RequestFailure(
                    .offsetMismatch, operation: "append", answer: state.answer)
            } catch let error as RequestFailure {
                failure = error
            }
            // The state shows what arrived.
            let isCurable = [.offsetMismatch, .writerReplaced].contains(failure.code)
            let isTooLarge = failure.code == .requestTooLarge
            if isTooLarge, bodySize.recordRefusal(of: range.byteCount) { continue }
            // After a break, the server is usually there: the wait is only for one that is not.
            if !failure.isInterrupted {
                try await retry.wait(after: failure, isCurable: isCurable)
            }
            let state = try await retry { try await client.state(of: address) }
            let before = offset
            if try note(state, from: start, to: end, isLast: isLast) { return state }
            if failure.isInterrupted {
                bodySize.recordBreak(of: range.byteCount, survived: offset - before)
                if offset == before { try await retry.wait(after: failure, isCurable: isCurable) }
            } else if failure.isCongestion {
                bodySize.recordCongestion()
            }
        }
    }

    /// Takes over what the server has.
    ///
    /// - Returns: Whether it has all the bytes, and made the file of them if these were the last.
    /// - Throws: `PROTOCOL_VIOLATION` for an offset outside the bytes in memory.
    private mutating func note(
        _ state: UploadState, from start: Int64, to end: Int64, isLast: Bool
    ) throws -> Bool {
        guard (start...end).contains(state.offset), isLast || !state.isComplete else {
            throw RequestFailure(.protocolViolation, operation: "append", answer: state.answer)
        }
        if state.offset > offset { retry.noteProgress() }
        offset = state.offset
        return offset == end && (!isLast || state.isComplete)
    }
}
