import KedgeEngine
import KedgeHash
import KedgeLocks
import KedgeModel

/// The promises in the server's answers, and whether the server keeps them.
final class History: Sendable {
    /// The parts of a session that the server announced.
    private struct Promise: Sendable {
        var chunks: Set<Int> = []
        /// Bytes of chunks that are not complete.
        var partials: [Int: Int64] = [:]
    }

    private struct State: Sendable {
        var sessions: [SessionID: Promise] = [:]
        var files: [SessionID: FileID] = [:]
        /// Sessions that a client asked to end. Nothing is promised of them any more.
        var released: Set<SessionID> = []
    }

    private let world: World
    private let state = Mutex(State())

    init(_ world: World) { self.world = world }

    /// Whether a client asked to end a session.
    var hasReleased: Bool { state.withLock { !$0.released.isEmpty } }

    func released(_ id: SessionID) { state.withLock { _ = $0.released.insert(id) } }

    func received(_ index: Int, of id: SessionID, isNew: Bool) {
        let isRepeated = state.withLock { state in
            state.sessions[id, default: Promise()].partials[index] = nil
            return !state.sessions[id, default: Promise()].chunks.insert(index).inserted && isNew
                && !state.released.contains(id)
        }
        // The server lost the chunk in between, or asked for its bytes twice.
        if isRepeated { world.report("chunk \(index) of a session was new twice") }
    }

    /// Records that the server announced incomplete chunks up to these offsets.
    func announced(_ partials: [Int: Int64], of id: SessionID) {
        state.withLock { $0.sessions[id, default: Promise()].partials = partials }
    }

    /// Records that the server refused a chunk. A chunk with a wrong hash loses its earlier bytes,
    /// too.
    func refused(_ index: Int, of id: SessionID) {
        state.withLock { $0.sessions[id]?.partials[index] = nil }
    }

    func finalized(_ id: SessionID, as file: FileID) {
        let earlier = state.withLock { state in
            defer { state.files[id] = file }
            return state.files[id]
        }
        if let earlier, earlier != file { world.report("a session became two files") }
    }

    /// Compares a server that has just started with all earlier answers.
    func check(_ engine: TransferEngine, content: [UInt8]) async {
        let state = state.withLock { $0 }
        for (id, file) in state.files.sorted(by: { $0.key.text < $1.key.text }) {
            world.count { $0.promisesChecked += 1 }
            await check(file, of: id, engine, content)
        }
        for (id, promise) in state.sessions.sorted(by: { $0.key.text < $1.key.text })
        where !state.released.contains(id) && state.files[id] == nil {
            world.count { $0.promisesChecked += promise.chunks.count + promise.partials.count }
            await check(promise, of: id, engine)
        }
    }

    private func check(
        _ file: FileID, of id: SessionID, _ engine: TransferEngine, _ content: [UInt8]
    ) async {
        do {
            let record = try await engine.file(file, owner: .anonymous)
            let opened = try await engine.openFile(record)
            var bytes: [UInt8] = []
            while Int64(bytes.count) < record.byteCount {
                let offset = Int64(bytes.count)
                bytes += try await engine.read(
                    opened, at: offset, upTo: record.byteCount - offset
                ) { Array($0) }
            }
            await opened.reader.close()
            if bytes != content { world.report("a finished file has other bytes") }
        } catch {
            world.report("a finished file is gone: \(String(reflecting: error))")
        }
    }

    private func check(
        _ promise: Promise, of id: SessionID, _ engine: TransferEngine
    ) async {
        do {
            let status = try await engine.sessionStatus(id, owner: .anonymous)
            switch status.state {
            case .finalizing, .completed: return
            case .open: break
            case .failed, .canceled, .expired:
                return world.report("a session is \(status.state.rawValue), which nobody asked for")
            }
            let received = Set(status.receivedChunks)
            let lost = promise.chunks.subtracting(received)
            if !lost.isEmpty { world.report("received chunks \(lost.sorted()) are lost") }
            for (index, byteCount) in promise.partials where !received.contains(index) {
                let kept = status.partialChunks.first { $0.index == index }?.receivedBytes ?? 0
                if kept < byteCount {
                    world.report("\(byteCount - kept) announced bytes of chunk \(index) are lost")
                }
            }
        } catch let error as EngineError
            where [.sessionExpired, .sessionNotFound].contains(error.code) && world.clock.hasJumped
        {
            // The session has expired. Its bytes can be adopted for a while.
            return
        } catch {
            world.report("a session is gone: \(String(reflecting: error))")
        }
    }
}
