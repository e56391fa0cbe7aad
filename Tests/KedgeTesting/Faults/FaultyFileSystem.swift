internal import Glibc
package import KedgeFiles
internal import KedgeLocks

/// The real file system with one call that fails.
///
/// A test fails the first call, then the second, and so on until everything succeeds. So it stops
/// the code under test at each of its steps.
package final class FaultyFileSystem: FileSystem {
    /// A kind of call.
    package enum Operation: Sendable {
        case open, status, makeDirectory, list, rename, remove, syncDirectory, availableBytes
        case write, read, syncData, truncate, lock, close
    }

    private struct Plan {
        var operation: Operation?
        var callsBefore = Int.max
        var number: Int32 = EIO
        var hasFailed = false
    }

    private let plan = Mutex(Plan())
    private let real = POSIXFileSystem()

    package init() {}

    /// Plans one call to fail.
    ///
    /// - Parameters:
    ///   - position: Number of calls that succeed before.
    ///   - operation: The only kind of call that counts and fails; nil for any.
    ///   - number: The system's error number.
    package func fail(
        after position: Int, of operation: Operation? = nil, with number: Int32 = EIO
    ) {
        plan.withLock {
            $0 = Plan(operation: operation, callsBefore: position, number: number)
        }
    }

    /// Lets every call succeed from now on.
    package func heal() { plan.withLock { $0.callsBefore = Int.max } }

    /// True once the planned call has failed.
    package var hasFailed: Bool { plan.withLock { $0.hasFailed } }

    fileprivate func enter(_ operation: Operation, _ path: String) throws(FileError) {
        let number: Int32? = plan.withLock { plan in
            guard plan.operation == nil || plan.operation == operation else { return nil }
            plan.callsBefore -= 1
            guard plan.callsBefore == -1 else { return nil }
            plan.hasFailed = true
            return plan.number
        }
        if let number {
            throw FileError(operation: "planned \(operation)", path: path, number: number)
        }
    }

    package func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        try enter(.open, path)
        return FaultyFile(try real.open(path, mode), path: path, faults: self)
    }

    package func status(of path: String) throws(FileError) -> FileStatus? {
        try enter(.status, path)
        return try real.status(of: path)
    }

    @discardableResult
    package func makeDirectory(_ path: String) throws(FileError) -> Bool {
        try enter(.makeDirectory, path)
        return try real.makeDirectory(path)
    }

    package func list(_ path: String) throws(FileError) -> [String] {
        try enter(.list, path)
        return try real.list(path)
    }

    package func rename(_ source: String, to target: String) throws(FileError) {
        try enter(.rename, target)
        try real.rename(source, to: target)
    }

    package func renameWithoutReplacing(_ source: String, to target: String) throws(FileError) {
        try enter(.rename, target)
        try real.renameWithoutReplacing(source, to: target)
    }

    package func link(_ source: String, to target: String) throws(FileError) {
        try enter(.rename, target)
        try real.link(source, to: target)
    }

    package func remove(_ path: String) throws(FileError) -> Bool {
        try enter(.remove, path)
        return try real.remove(path)
    }

    package func syncDirectory(_ path: String) throws(FileError) {
        try enter(.syncDirectory, path)
        try real.syncDirectory(path)
    }

    package func availableBytes(at path: String) throws(FileError) -> Int64 {
        try enter(.availableBytes, path)
        return try real.availableBytes(at: path)
    }
}

private final class FaultyFile: OpenFile {
    private let real: any OpenFile
    private let path: String
    private let faults: FaultyFileSystem

    init(_ real: any OpenFile, path: String, faults: FaultyFileSystem) {
        self.real = real
        self.path = path
        self.faults = faults
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try faults.enter(.write, path)
        try real.write(bytes, at: offset)
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(FileError) -> Int {
        try faults.enter(.read, path)
        return try real.read(into: buffer, at: offset)
    }

    func syncData() throws(FileError) {
        try faults.enter(.syncData, path)
        try real.syncData()
    }

    func truncate(to byteCount: Int64) throws(FileError) {
        try faults.enter(.truncate, path)
        try real.truncate(to: byteCount)
    }

    func status() throws(FileError) -> FileStatus {
        try faults.enter(.status, path)
        return try real.status()
    }

    func lockExclusively() throws(FileError) {
        try faults.enter(.lock, path)
        try real.lockExclusively()
    }

    func close() throws(FileError) {
        try faults.enter(.close, path)
        try real.close()
    }
}
