import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting

/// A client that records each promise of the server at once.
struct PromisedClient: Sendable {
    let node: SimulatedNode
    let ledger: Shared<Promises>

    init(_ node: SimulatedNode, _ promises: Promises = Promises()) {
        self.node = node
        ledger = Shared(promises)
    }

    func begin(_ content: [UInt8], sized: Bool = true) async throws -> Upload {
        let upload = try await node.begin(content, sized: sized)
        ledger.update { $0.uploads[upload.id] = upload }
        return upload
    }

    func put(_ index: Int, of upload: Upload, from start: Int = 0) async throws {
        try await node.put(index, of: upload, from: start)
        ledger.update { _ = $0.chunks[upload.id, default: []].insert(index) }
    }

    /// Interrupts a chunk and records the bytes that the status announces.
    func breakOff(_ index: Int, of upload: Upload, from start: Int = 0, after count: Int)
        async throws
    {
        await node.breakOff(index, of: upload, from: start, after: count)
        let status = try await node.status(of: upload)
        ledger.update { promises in
            for partial in status.partialChunks {
                promises.partials[upload.id, default: [:]][partial.index] = partial.receivedBytes
            }
        }
    }

    func append(
        _ count: Int, to upload: Upload, at offset: Int, completes: Bool = false
    ) async throws {
        let end = try await node.append(
            upload.content[offset..<offset + count], to: upload, at: offset, completes: completes)
        ledger.update { $0.offsets[upload.id] = end }
    }

    @discardableResult
    func finish(_ upload: Upload) async throws -> FileRecord {
        let file = try await node.finish(upload)
        ledger.update { $0.files[file.id] = upload.content }
        return file
    }

    func delete(_ file: FileRecord) async throws {
        // From the request on the file may be there or not.
        ledger.update { promises in
            promises.files[file.id] = nil
            promises.uploads = promises.uploads.filter { $0.value.digest != file.digest }
        }
        try await node.engine.deleteFile(file.id, owner: .tester)
        ledger.update { _ = $0.deletedFiles.insert(file.id) }
    }

    func cancel(_ upload: Upload) async throws {
        ledger.update { $0.uploads[upload.id] = nil }
        try await node.engine.cancelSession(upload.id, owner: upload.owner)
        ledger.update { _ = $0.canceledSessions.insert(upload.id) }
    }
}

func digest(of content: [UInt8]) -> SHA256Digest { SHA256Hasher.digest(of: content) }
