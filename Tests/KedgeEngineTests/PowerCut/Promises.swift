import KedgeEngine
import KedgeModel

/// Everything that a server has acknowledged to its clients and must keep.
struct Promises: Sendable {
    /// Sessions that were created and not cancelled.
    var uploads: [SessionID: Upload] = [:]
    /// Chunks that were acknowledged.
    var chunks: [SessionID: Set<Int>] = [:]
    /// Bytes of chunks that a status announced as received.
    var partials: [SessionID: [Int: Int64]] = [:]
    /// Offsets in the answers to appends.
    var offsets: [SessionID: Int64] = [:]
    /// Files that exist, with their content.
    var files: [FileID: [UInt8]] = [:]
    /// Files whose deletion was acknowledged.
    var deletedFiles: Set<FileID> = []
    /// Sessions whose end was acknowledged.
    var canceledSessions: Set<SessionID> = []
}

extension Promises {
    /// Finishes every upload, as its client would, and describes each promise that the server
    /// broke.
    func violations(on node: some EngineHolder) async -> [String] {
        var found: [String] = []
        for upload in uploads.values { found += await violations(of: upload, on: node) }
        for (id, content) in files { found += await violations(of: id, content, on: node) }
        for id in deletedFiles {
            if let state = await Self.state(of: id, on: node) {
                found.append("deleted file \(state)")
            }
        }
        for id in canceledSessions {
            // The session is unknown by now, or its state is canceled. Any other answer is wrong.
            let status = try? await node.engine.sessionStatus(id, owner: .tester)
            if let status, status.state != .canceled { found.append("canceled session lives") }
        }
        found += await Self.violationsInList(on: node)
        return found
    }

    private func violations(of upload: Upload, on node: some EngineHolder) async -> [String] {
        var found: [String] = []
        do {
            let status = try await node.status(of: upload)
            if status.state != .completed, status.state != .finalizing {
                found += try await lost(of: upload, status, on: node)
                try await node.complete(upload)
            }
            let file = try await node.finish(upload)
            if try await node.content(of: file) != upload.content {
                found.append("another content than the upload's")
            }
        } catch {
            found.append("the upload cannot be finished: \(String(reflecting: error))")
        }
        return found
    }

    /// Acknowledged bytes of an open session that are not there.
    private func lost(
        of upload: Upload, _ status: SessionStatus, on node: some EngineHolder
    ) async throws -> [String] {
        let received = Set(status.receivedChunks)
        let missing = chunks[upload.id, default: []].subtracting(received)
        var found = missing.sorted().map { "chunk \($0) is lost" }
        for (index, byteCount) in partials[upload.id, default: [:]] where !received.contains(index)
        {
            let kept = status.partialChunks.first { $0.index == index }?.receivedBytes ?? 0
            if kept < byteCount { found.append("\(byteCount - kept) announced bytes are lost") }
        }
        if let offset = offsets[upload.id], try await node.offset(of: upload) < offset {
            found.append("the offset went back from \(offset)")
        }
        return found
    }

    private func violations(
        of id: FileID, _ content: [UInt8], on node: some EngineHolder
    ) async -> [String] {
        do {
            let file = try await node.engine.file(id, owner: .tester)
            return try await node.content(of: file) == content ? [] : ["a file changed"]
        } catch {
            return ["a file is lost: \(String(reflecting: error))"]
        }
    }

    private static func state(of id: FileID, on node: some EngineHolder) async -> String? {
        do {
            _ = try await node.engine.file(id, owner: .tester)
            return "is back"
        } catch let error as EngineError where [.fileNotFound, .fileGone].contains(error.code) {
            return nil
        } catch {
            return "cannot be asked for: \(String(reflecting: error))"
        }
    }

    /// Listed files that are damaged.
    private static func violationsInList(on node: some EngineHolder) async -> [String] {
        do {
            var found: [String] = []
            for file in try await node.engine.files(of: .tester, after: nil, limit: 1000) {
                let content = try await node.content(of: file)
                if digest(of: content) != file.digest { found.append("a listed file is damaged") }
            }
            return found
        } catch {
            return ["the list cannot be read: \(String(reflecting: error))"]
        }
    }
}

extension EngineHolder {
    /// Sends the missing bytes, from the server's offsets.
    func complete(_ upload: Upload) async throws {
        if !upload.hasSize {
            let offset = Int(try await offset(of: upload))
            _ = try await append(
                upload.content.dropFirst(offset), to: upload, at: offset, completes: true)
            return
        }
        let status = try await status(of: upload)
        for index in 0..<upload.chunkCount where !status.receivedChunks.contains(index) {
            let partial = status.partialChunks.first { $0.index == index }
            try await put(index, of: upload, from: Int(partial?.receivedBytes ?? 0))
        }
    }
}
