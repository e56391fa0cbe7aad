internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel
internal import KedgeTransport

extension SequentialUploadWorker {
    /// Sends the missing bytes, one request after the other.
    ///
    /// - Returns: The state in which the upload is complete.
    func sendRest(
        from first: UploadState, to address: UploadAddress
    ) async throws -> UploadState {
        var state = first
        while !state.isComplete {
            try Task.checkCancellation()
            state = try await sendBody(at: state, to: address)
        }
        return state
    }

    private func sendBody(
        at state: UploadState, to address: UploadAddress
    ) async throws -> UploadState {
        let range = sendState.bodySize.range(from: state.offset, ofSize: size)
        let isLast = range.end == size
        // The server completes the file with its last byte: this is the last chance to check.
        if isLast { try await source.verifyUnchanged() }
        let part = try await prepare(range, isLast: isLast)
        // All requests for a chunk count as one attempt.
        let chunkStart = upload.layout.range(ofChunk: chunk)?.start
        uncountedTries = !range.isEmpty && range.start == chunkStart ? 1 : 0
        let began = context.environment.now()
        let sent = SentByteCount()
        do {
            let countRate = context.rate.cumulativeCounter()
            // Runs in parallel with the request, which nearly always takes longer.
            let (store, lease, hash) = (context.store, context.lease, wholeFile.saved)
            async let saving: Void = store.saveHash(hash, of: lease)
            let after = try await client.append(part, to: address) { count in
                sent.set(count)
                countRate(count)
            }
            try await saving
            try validate(after)
            guard (range.start...range.end).contains(after.offset) else {
                throw RequestFailure(
                    .protocolViolation, operation: "append", answer: after.answer)
            }
            let isIdle = after.offset <= range.start && !after.isComplete
            sendState.bodySize.recordSuccess(
                in: context.environment.now().duration(since: began), byteCount: range.byteCount)
            adopt(after.capabilities)
            isTakenWhole = after.isComplete
            try await note(after)
            if isIdle {
                // The server accepted the request without progress: limited by the retry budget.
                try await backOff(
                    after: RequestFailure(
                        .offsetMismatch, operation: "append", answer: after.answer),
                    isReachable: true)
            }
            return after
        } catch let failure as RequestFailure {
            return try await goOn(
                after: failure, of: range, sentByteCount: sent.count, to: address)
        }
    }

    /// Reads bytes once for the request, its checksum and the whole-file hash.
    private func prepare(_ range: ByteRange, isLast: Bool) async throws -> AppendBody {
        guard !range.isEmpty else {
            return AppendBody(range: range, body: .bytes([]), checksum: nil, isLast: isLast)
        }
        let isBehind = wholeFile.saved.offsetBytes < range.start
        let chunk = try await source.prepare(self.chunk, range: range, feeding: wholeFile)
        var isStreamed = false
        if case .file = chunk.content { isStreamed = true }
        hasReadUnseen = hasReadUnseen || isStreamed || isBehind
        if isStreamed || isBehind {
            // The hash read the file by itself. It is proof for `compareSource` only if the file
            // was unchanged afterwards.
            _ = try await wholeFile.digest(ofFile: range.end)
            try await source.verifyUnchanged()
        }
        return AppendBody(
            range: range, body: chunk.body, checksum: try await checksum(of: chunk),
            isLast: isLast)
    }

    private func checksum(of chunk: PreparedChunk) async throws -> BodyChecksum? {
        guard sendState.bodySize.carriesChecksum else { return nil }
        // IETF servers ignore an unknown `Content-Digest`, so they need not announce support.
        let algorithm = upload.uploadProtocol == .resumableUpload ? .sha256 : capabilities.checksum
        guard let algorithm else { return nil }
        if algorithm == .sha256 {
            return BodyChecksum(algorithm: algorithm, bytes: chunk.digest.bytes)
        }
        let bytes = try await context.pool.run { try chunk.checksum(algorithm) }
        return BodyChecksum(algorithm: algorithm, bytes: bytes)
    }
}

extension PreparedChunk {
    /// Computes a checksum other than SHA-256, from memory or from the file.
    fileprivate func checksum(_ algorithm: ChecksumAlgorithm) throws -> [UInt8] {
        var hasher = ChecksumHasher(algorithm)
        switch content {
        case .memory(let buffer):
            buffer.withBytes { hasher.update($0) }
        case .file(let file):
            let body = FileRangeBody(file: file, start: range.start, byteCount: range.byteCount)
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            var offset: Int64 = 0
            while offset < range.byteCount {
                let count = try bytes.withUnsafeMutableBytes { try body.read(into: $0, at: offset) }
                hasher.update(Array(bytes[..<count]))
                offset += Int64(count)
            }
        }
        return hasher.checksum()
    }
}
