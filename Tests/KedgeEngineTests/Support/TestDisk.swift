import Glibc
import KedgeFiles
import KedgeModel
import KedgeTesting

/// The real file system with counters, and with a rule that makes calls fail or wait.
///
/// Unlike `FaultyFileSystem` it goes on failing until ``heal()``, as a full disk does.
final class TestDisk: ForwardingFileSystem {
    enum Call: Sendable {
        case write
        case read
        case sync
    }

    struct Counts: Equatable, Sendable {
        var writes = 0
        var syncs = 0
        var readBytes = 0
    }

    /// A use of the page cache for the bytes of a file.
    enum CacheUse: Hashable, Sendable {
        case read(ByteRange)
        case drop(ByteRange)
    }

    /// Gets a call and its number among its kind since the rule was set, from 0. Returns the
    /// system's error number for a call that fails.
    typealias Rule = @Sendable (Call, Int) -> Int32?

    private struct State: Sendable {
        var counts = Counts()
        var cacheUses: [CacheUse] = []
        var calls: [Call: Int] = [:]
        var rule: Rule?
        var onDrop: (@Sendable () -> Void)?
        var availableBytes: Int64?
    }

    private let state = Shared(State())
    let base = POSIXFileSystem()

    /// Counts since the start.
    var counts: Counts { state.value.counts }

    /// Every use of the page cache since the start, in order.
    var cacheUses: [CacheUse] { state.value.cacheUses }

    func apply(_ rule: @escaping Rule) {
        state.update {
            $0.rule = rule
            $0.calls = [:]
        }
    }

    /// Fills the disk up at this write: it and all later writes fail.
    func fillUp(atWrite number: Int) {
        apply { call, count in call == .write && count >= number ? ENOSPC : nil }
    }

    /// Fails the first `times` calls of a kind, then lets all succeed.
    func fail(_ failing: Call, times: Int = 1, with number: Int32 = EIO) {
        apply { call, count in call == failing && count < times ? number : nil }
    }

    func heal() { apply { _, _ in nil } }

    /// Sets the free space that the file system reports; nil restores the real one.
    func pretendAvailable(_ byteCount: Int64?) {
        state.update { $0.availableBytes = byteCount }
    }

    fileprivate func enter(_ call: Call, byteCount: Int = 0) throws(FileError) {
        let (rule, number): (Rule?, Int) = state.update { state in
            switch call {
            case .write: state.counts.writes += 1
            case .sync: state.counts.syncs += 1
            case .read: state.counts.readBytes += byteCount
            }
            defer { state.calls[call, default: 0] += 1 }
            return (state.rule, state.calls[call, default: 0])
        }
        // Outside the lock: the rule may wait.
        if let error = rule?(call, number) {
            throw FileError(operation: "planned \(call)", path: "", number: error)
        }
    }

    /// Calls the closure before cached bytes are dropped.
    func whenDroppingCached(_ action: @escaping @Sendable () -> Void) {
        state.update { $0.onDrop = action }
    }

    fileprivate func record(_ use: CacheUse) {
        let action: (@Sendable () -> Void)? = state.update { state in
            state.cacheUses.append(use)
            if case .drop = use { return state.onDrop }
            return nil
        }
        action?()
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        TestFile(real: try base.open(path, mode), disk: self)
    }

    func availableBytes(at path: String) throws(FileError) -> Int64 {
        if let pretended = state.value.availableBytes { return pretended }
        return try base.availableBytes(at: path)
    }
}

private final class TestFile: OpenFile {
    private let real: any OpenFile
    private let disk: TestDisk

    init(real: any OpenFile, disk: TestDisk) {
        self.real = real
        self.disk = disk
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try disk.enter(.write)
        try real.write(bytes, at: offset)
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(FileError) -> Int {
        try disk.enter(.read, byteCount: buffer.count)
        let count = try real.read(into: buffer, at: offset)
        disk.record(.read(ByteRange(start: offset, end: offset + Int64(count))))
        return count
    }

    func dropCached(_ byteCount: Int64, at offset: Int64) {
        real.dropCached(byteCount, at: offset)
        disk.record(.drop(ByteRange(start: offset, end: offset + byteCount)))
    }

    func syncData() throws(FileError) {
        try disk.enter(.sync)
        try real.syncData()
    }

    func truncate(to byteCount: Int64) throws(FileError) { try real.truncate(to: byteCount) }
    func status() throws(FileError) -> FileStatus { try real.status() }
    func lockExclusively() throws(FileError) { try real.lockExclusively() }
    func close() throws(FileError) { try real.close() }
}
