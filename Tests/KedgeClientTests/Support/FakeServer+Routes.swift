import Foundation
import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeModel

extension FakeServer.State {
    mutating func create(_ seen: FakeServer.Seen, _ body: [UInt8]) -> Reply {
        // A body that is no request is refused, as by the real server.
        guard let request = try? JSONDecoder().decode(CreateSessionRequest.self, from: Data(body))
        else { return Reply(problem: .badRequest) }
        let key = seen.fields[.idempotencyKey] ?? ""
        let id = idempotencyKeys[key] ?? SessionID.random()
        if idempotencyKeys.updateValue(id, forKey: key) == nil {
            var session = FakeServer.Session(
                name: request.fileName, size: request.fileSize,
                chunkSize: chunkSize ?? request.chunkSize ?? 4 << 20)
            session.metadata = request.metadata ?? [:]
            if let adopted = request.adoptSessionId, let old = sessions[adopted] {
                session.chunks = old.chunks
                session.partials = old.partials
            }
            sessions[id] = session
        }
        guard let session = sessions[id] else { return Reply(problem: .internalError) }
        return Reply(
            status: 201,
            json: CreateSessionResponse(
                sessionId: id, expiresAt: Timestamp(millisecondsSinceEpoch: 4_000_000_000_000),
                state: session.state, fileSize: session.size, chunkSize: session.chunkSize,
                totalChunks: session.layout.chunkCount ?? 0,
                receivedBytes: Int64(session.chunks.values.reduce(0) { $0 + $1.count }),
                limits: SessionLimits(
                    minChunkSize: 1, maxChunkSize: 64 << 20, maxFileSize: 1 << 40,
                    maxConcurrentChunks: 8, partialBodies: takesPartialBodies ? true : nil),
                requiredHeaders: ["Content-Range", "X-Chunk-Hash"],
                storedFiles: storedFiles(for: session, seen)))
    }

    /// Returns the files that an empty session may be; nil unless the request asks for them.
    private func storedFiles(
        for session: FakeServer.Session, _ seen: FakeServer.Seen
    ) -> [KedgeModel.StoredFile]? {
        guard storedFileOfferCount > 0, seen.path.contains("storedFiles=true"),
            session.state == .open, session.chunks.isEmpty, session.partials.isEmpty
        else { return nil }
        return files.filter { $0.value.bytes.count == session.size }.flatMap { id, file in
            let first = file.bytes.prefix(Int(session.chunkSize))
            let offer = KedgeModel.StoredFile(
                remoteFileId: id, fileHashSha256: SHA256Hasher.digest(of: file.bytes),
                firstChunkSha256: SHA256Hasher.digest(of: Array(first)))
            return Array(repeating: offer, count: storedFileOfferCount)
        }
    }

    func status(_ text: String, _ seen: FakeServer.Seen) -> Reply {
        guard let id = SessionID(text), let session = sessions[id] else {
            return Reply(problem: .sessionNotFound)
        }
        guard session.state != .expired else { return Reply(problem: .sessionExpired) }
        var status = SessionStatus(
            sessionId: id, state: session.state, fileName: session.name,
            fileSize: session.size, chunkSize: session.chunkSize,
            totalChunks: session.layout.chunkCount, received: ChunkSet(session.chunks.keys),
            receivedBytes: 0,
            partialChunks: session.partials.filter { !$0.value.isEmpty }.map {
                PartialChunk(index: $0.key, receivedBytes: Int64($0.value.count))
            },
            expiresAt: Timestamp(millisecondsSinceEpoch: 4_000_000_000_000),
            fileHashSha256: session.declaredDigest, remoteFileId: session.file,
            limits: takesPartialBodies
                ? SessionLimits(
                    minChunkSize: 1, maxChunkSize: 64 << 20, maxFileSize: 1 << 40,
                    maxConcurrentChunks: 8, partialBodies: true) : nil,
            storedFiles: storedFiles(for: session, seen))
        let asksForRanges = seen.path.contains("?chunks=")
        if seen.path.hasSuffix("?chunks=digests") {
            guard offersSessionDigests else { return Reply(problem: .badRequest) }
            status.receivedDigests = status.receivedChunks.map {
                SHA256Hasher.digest(of: session.chunks[$0] ?? [])
            }
            status.partialChunks = status.partialChunks.map {
                let bytes = session.partials[$0.index] ?? []
                return PartialChunk(
                    index: $0.index, receivedBytes: $0.receivedBytes,
                    sha256: SHA256Hasher.digest(of: bytes))
            }
        }
        return Reply(
            status: 200, fields: [.contentType: "application/json"],
            body: status.text(asksForRanges ? .ranges : .full))
    }

    /// Refuses a chunk with `Expect: 100-continue` that begins before the first missing byte.
    func refuseEarly(_ seen: FakeServer.Seen) -> Reply? {
        let parts = seen.path.split(separator: "/").map(String.init)
        guard seen.method == "PUT", seen.fields[.expect] == "100-continue", parts.count == 5,
            let session = SessionID(parts[2]).flatMap({ sessions[$0] }), session.state == .open,
            let index = Int(parts[4]), let range = session.layout.range(ofChunk: index),
            let kept = session.partials[index]?.count,
            let start = seen.fields[.contentRange].flatMap({ ContentRange($0) })?.range?.start,
            start < range.start + Int64(kept)
        else { return nil }
        return Reply(problem: .offsetMismatch) { $0.expectedOffset = range.start + Int64(kept) }
    }

    mutating func put(
        _ text: String, _ index: Int, _ seen: FakeServer.Seen, _ body: [UInt8], isCut: Bool
    ) -> Reply {
        guard let id = SessionID(text), var session = sessions[id] else {
            return Reply(problem: .sessionNotFound)
        }
        guard session.state != .expired else { return Reply(problem: .sessionExpired) }
        guard session.state == .open else { return Reply(problem: .sessionClosed) }
        guard let range = session.layout.range(ofChunk: index) else {
            return Reply(problem: .chunkOutOfBounds)
        }
        guard let sent = seen.fields[.contentRange].flatMap({ ContentRange($0) }),
            let bytes = sent.range, sent.total == session.size, bytes.end <= range.end,
            takesPartialBodies || bytes.end == range.end
        else { return Reply(problem: .rangeMismatch) }
        guard
            let digest = seen.fields[.chunkHash].flatMap({
                DigestHeader.parseChunkHash($0)
            })
        else { return Reply(problem: .chunkHashRequired) }
        if let stored = session.chunks[index] {
            repeatedByteCount += body.count
            let same = SHA256Hasher.digest(of: stored) == digest
            return same ? receipt(index, stored, session) : Reply(problem: .chunkConflict)
        }
        let kept = session.partials[index] ?? []
        let start = Int(bytes.start - range.start)
        guard start <= kept.count else {
            return Reply(problem: .offsetMismatch) {
                $0.expectedOffset = range.start + Int64(kept.count)
            }
        }
        repeatedByteCount += min(body.count, kept.count - start)
        let whole = Array(kept.prefix(start)) + body
        if isCut {
            session.partials[index] = whole.count > kept.count ? whole : kept
            sessions[id] = session
            return Reply(status: 0)
        }
        guard bytes.end == range.end else {
            session.partials[index] = whole.count > kept.count ? whole : kept
            sessions[id] = session
            let count = Int64(max(whole.count, kept.count))
            return Reply(status: 202, json: PartialChunk(index: index, receivedBytes: count))
        }
        session.partials[index] = nil
        guard SHA256Hasher.digest(of: whole) == digest, Int64(whole.count) == range.byteCount else {
            sessions[id] = session
            return Reply(problem: .chunkHashMismatch)
        }
        session.chunks[index] = whole
        sessions[id] = session
        return receipt(index, whole, session)
    }

    private func receipt(_ index: Int, _ bytes: [UInt8], _ session: FakeServer.Session) -> Reply {
        Reply(
            status: 201,
            json: ChunkReceipt(
                index: index, sha256: SHA256Hasher.digest(of: bytes),
                receivedBytes: Int64(bytes.count), receivedChunkCount: session.chunks.count,
                totalChunks: session.layout.chunkCount))
    }

    mutating func finalize(_ text: String, _ body: [UInt8]) -> Reply {
        guard let id = SessionID(text), var session = sessions[id] else {
            return Reply(problem: .sessionNotFound)
        }
        let count = session.layout.chunkCount ?? 0
        // The body is optional.
        let asked = try? JSONDecoder().decode(FinalizeRequest.self, from: Data(body))
        if session.chunks.isEmpty, let wanted = asked?.fileHashSha256, storedFileOfferCount > 0,
            let stored = files.values.first(where: {
                SHA256Hasher.digest(of: $0.bytes) == wanted
                    && Int64($0.bytes.count) == session.size
            })
        {
            for index in 0..<count {
                guard let range = session.layout.range(ofChunk: index) else { continue }
                session.chunks[index] = Array(stored.bytes[Int(range.start)..<Int(range.end)])
            }
        }
        guard session.chunks.count == count else { return Reply(problem: .missingChunks) }
        let bytes = (0..<count).flatMap { session.chunks[$0] ?? [] }
        let digest = SHA256Hasher.digest(of: bytes)
        if let wanted = asked?.fileHashSha256, wanted != digest {
            return Reply(problem: .integrityMismatch) { $0.actualSha256 = digest }
        }
        let file = session.file ?? FileID.random()
        session.file = file
        session.state = .completed
        session.declaredDigest = digest
        sessions[id] = session
        files[file] = FakeServer.StoredFile(
            bytes: bytes, name: session.name, etag: "\"\(digest.hex)\"",
            chunkSize: session.chunkSize, mtime: session.metadata["mtime"])
        return Reply(
            json: FinalizeResponse(
                remoteFileId: file, fileHashSha256: digest, size: Int64(bytes.count),
                etag: "\"\(digest.hex)\""))
    }

    func about(_ text: String, _ subject: String) -> Reply {
        guard let id = FileID(text), let file = files[id] else {
            return Reply(problem: .fileNotFound)
        }
        let layout = ChunkLayout(fileSize: Int64(file.bytes.count), chunkSize: file.chunkSize)
        if subject == "chunks" {
            guard offersChunkDigests else { return Reply(problem: .routeNotFound) }
            let digests = (0..<(layout.chunkCount ?? 0)).compactMap { index in
                layout.range(ofChunk: index).map {
                    SHA256Hasher.digest(of: Array(file.bytes[Int($0.start)..<Int($0.end)]))
                }
            }
            return Reply(json: FileChunks(chunkSize: file.chunkSize, sha256: digests))
        }
        return Reply(
            json: FileMeta(
                remoteFileId: id, fileName: file.name, size: Int64(file.bytes.count),
                sha256: SHA256Hasher.digest(of: file.bytes), mimeType: nil, etag: file.etag,
                chunkSize: file.chunkSize, createdAt: Timestamp(millisecondsSinceEpoch: 0),
                mtime: file.mtime))
    }

    func file(_ text: String, _ seen: FakeServer.Seen) -> Reply {
        guard let id = FileID(text), let file = files[id] else {
            return Reply(problem: .fileNotFound)
        }
        return serve(file.bytes, etag: file.etag, seen)
    }

    func plain(_ name: String, _ seen: FakeServer.Seen) -> Reply {
        guard let plain = plain[name] else { return Reply(status: 404) }
        if let redirect = plain.redirect {
            return Reply(status: 302, fields: [.location: redirect])
        }
        if let date = seen.fields[.ifUnmodifiedSince], date != plain.lastModified {
            return Reply(status: 412)
        }
        var reply = serve(
            plain.bytes, etag: plain.etag, modified: plain.lastModified, seen,
            ranges: plain.servesRanges)
        reply.fields[.date] = plain.date
        if plain.servesRanges { reply.fields[.acceptRanges] = "bytes" }
        if let digest = plain.digest {
            reply.fields[.reprDigest] = DigestHeader.rfc9530(digest)
        }
        if !plain.announcesLength { reply.fields[.contentLength] = nil }
        if seen.method == "HEAD" { reply.body = [] }
        return reply
    }

    private func serve(
        _ bytes: [UInt8], etag: String?, modified: String? = nil, _ seen: FakeServer.Seen,
        ranges: Bool = true
    ) -> Reply {
        var fields: HTTPFields = [:]
        fields[.lastModified] = modified
        if let etag { fields[.eTag] = etag }
        if let match = seen.fields[.ifMatch], match != etag { return Reply(status: 412) }
        if ranges, let asked = seen.fields[.range],
            seen.fields[.ifRange].map({ $0 == etag || $0 == modified }) ?? true
        {
            let ends = asked.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
            guard ends.count == 2, ends[0] < bytes.count else {
                fields[.contentRange] = "bytes */\(bytes.count)"
                return Reply(status: 416, fields: fields)
            }
            let end = min(ends[1], bytes.count - 1)
            fields[.contentRange] = "bytes \(ends[0])-\(end)/\(bytes.count)"
            fields[.contentLength] = "\(end - ends[0] + 1)"
            return Reply(status: 206, fields: fields, body: Array(bytes[ends[0]...end]))
        }
        fields[.contentLength] = "\(bytes.count)"
        return Reply(status: 200, fields: fields, body: bytes)
    }
}
