import KedgeEngine
import KedgeHash
import KedgeLocks
import KedgeModel

/// What the server has answered, and whether it stands by it.
final class History: Sendable {
    private struct State: Sendable {
        var received: [SessionID: Set<Int>] = [:]
        var files: [SessionID: FileID] = [:]
        /// Sessions that somebody asked to end: from then on nothing is promised.
        var released: Set<SessionID> = []
    }

    private let world: World
    private let state = Mutex(State())

    init(_ world: World) { self.world = world }

    /// True once somebody asked to end a session.
    var hasReleased: Bool { state.withLock { !$0.released.isEmpty } }

    func released(_ id: SessionID) { state.withLock { _ = $0.released.insert(id) } }

    func received(_ index: Int, of id: SessionID, isNew: Bool) {
        let isRepeated = state.withLock { state in
            !state.received[id, default: []].insert(index).inserted && isNew
                && !state.released.contains(id)
        }
        // Either it was lost in between, or its bytes were asked for twice.
        if isRepeated { world.report("chunk \(index) of a session was new twice") }
    }

    func finalized(_ id: SessionID, as file: FileID) {
        let earlier = state.withLock { state in
            defer { state.files[id] = file }
            return state.files[id]
        }
        if let earlier, earlier != file { world.report("a session became two files") }
    }

    /// Compares a server that has just started with everything that was answered before.
    func check(_ engine: TransferEngine, content: [UInt8]) async {
        let state = state.withLock { $0 }
        for (id, file) in state.files.sorted(by: { $0.key.text < $1.key.text }) {
            world.count { $0.promisesChecked += 1 }
            await check(file, of: id, engine, content)
        }
        for (id, chunks) in state.received.sorted(by: { $0.key.text < $1.key.text })
        where !state.released.contains(id) && state.files[id] == nil {
            world.count { $0.promisesChecked += chunks.count }
            await check(chunks, of: id, engine)
        }
    }

    private func check(
        _ file: FileID, of id: SessionID, _ engine: TransferEngine, _ content: [UInt8]
    ) async {
        do {
            let record = try await engine.file(file, owner: .anonymous)
            let opened = try await engine.openFile(record)
            let bytes = try await engine.read(opened, at: 0, upTo: record.byteCount) { Array($0) }
            await opened.reader.close()
            // Reads may be shorter than asked; then the digest of the record has to do.
            let isWhole = bytes.count == content.count
            if isWhole ? bytes != content : SHA256Hasher.digest(of: content) != record.digest {
                world.report("a finished file has other bytes")
            }
        } catch {
            world.report("a finished file is gone: \(String(reflecting: error))")
        }
    }

    private func check(
        _ chunks: Set<Int>, of id: SessionID, _ engine: TransferEngine
    ) async {
        do {
            let status = try await engine.sessionStatus(id, owner: .anonymous)
            guard status.state == .open else { return }
            let lost = chunks.subtracting(status.receivedChunks)
            if !lost.isEmpty { world.report("received chunks \(lost.sorted()) are lost") }
        } catch let error as EngineError
            where error.code == .sessionExpired
            || error.code == .sessionNotFound && world.clock.hasJumped
        {
            // Its time is over; what it had could be adopted for a while.
            return
        } catch {
            world.report("a session is gone: \(String(reflecting: error))")
        }
    }
}
