import Glibc
import KedgeFiles
import KedgeLocks
import KedgeTesting

/// The real file system with counted reads and a disk that can be full.
final class TestFileSystem: ForwardingFileSystem {
    private struct State {
        var readByteCounts: [String: Int64] = [:]
        var writableByteCount = Int64.max
        var availableByteCount: Int64?
        var beforeRead: (action: @Sendable () -> Void, skipCount: Int)?
    }

    let base = POSIXFileSystem()
    private let state = Mutex(State())

    func readByteCount(_ path: String) -> Int64 { state.withLock { $0.readByteCounts[path] ?? 0 } }

    /// Makes every write fail for want of space after this many more bytes.
    func setWritable(_ byteCount: Int64) { state.withLock { $0.writableByteCount = byteCount } }

    func setAvailable(_ byteCount: Int64?) { state.withLock { $0.availableByteCount = byteCount } }

    /// Runs an action once, before the first read after this many further reads.
    func beforeRead(after skipCount: Int, _ action: @escaping @Sendable () -> Void) {
        state.withLock { $0.beforeRead = (action, skipCount) }
    }

    fileprivate func beginRead() {
        let action = state.withLock { state -> (@Sendable () -> Void)? in
            guard let planned = state.beforeRead else { return nil }
            state.beforeRead = planned.skipCount > 0 ? (planned.action, planned.skipCount - 1) : nil
            return planned.skipCount > 0 ? nil : planned.action
        }
        action?()
    }

    fileprivate func noteRead(_ path: String, _ count: Int) {
        state.withLock { $0.readByteCounts[path, default: 0] += Int64(count) }
    }

    fileprivate func noteWrite(_ path: String, _ count: Int) throws(FileError) {
        let fits = state.withLock { state in
            guard state.writableByteCount >= Int64(count) else { return false }
            if state.writableByteCount != .max { state.writableByteCount -= Int64(count) }
            return true
        }
        guard fits else { throw FileError(operation: "pwrite", path: path, number: ENOSPC) }
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        TestFile(base: try base.open(path, mode), path: path, system: self)
    }

    func availableBytes(at path: String) throws(FileError) -> Int64 {
        if let set = state.withLock({ $0.availableByteCount }) { return set }
        return try base.availableBytes(at: path)
    }
}

private final class TestFile: ForwardingFile {
    let base: any OpenFile
    private let path: String
    private let system: TestFileSystem

    init(base: any OpenFile, path: String, system: TestFileSystem) {
        self.base = base
        self.path = path
        self.system = system
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try system.noteWrite(path, bytes.count)
        try base.write(bytes, at: offset)
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(FileError) -> Int {
        system.beginRead()
        let count = try base.read(into: buffer, at: offset)
        system.noteRead(path, count)
        return count
    }
}
