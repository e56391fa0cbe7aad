internal import KedgeEngine
package import KedgeFiles
internal import KedgeLocks
internal import KedgeModel

/// The bytes of one session on this node, in unnamed files that disappear with the process. The
/// content is not durable. Offsets are those of the uploaded file. Every call that accesses files
/// blocks.
///
/// The bytes are in segments of 32 MiB, so that unneeded segments free their space on any file
/// system.
package final class Spool: Sendable {
    package static let segmentByteCount: Int64 = 32 << 20

    private struct State {
        var segments: [Int64: any OpenFile] = [:]
        var held = RangeSet<Int64>()
        /// Ranges that are being written or sent; their segments stay.
        var pins: [Int: Range<Int64>] = [:]
        var nextPin = 0
        /// Ranges that are removed when their last pin is.
        var doomed = RangeSet<Int64>()
        var isClosed = false

        /// Removes the doomed ranges that are not pinned. Returns their size in bytes.
        mutating func sweep() -> Int64 {
            var gone = doomed
            for pin in pins.values { gone.remove(contentsOf: pin) }
            guard !gone.isEmpty else { return 0 }
            doomed.subtract(gone)
            held.subtract(gone)
            let indices = gone.ranges.flatMap { Spool.segments(of: $0) }
            for index in Set(indices) where isUnused(index) { segments[index] = nil }
            return gone.ranges.reduce(0) { $0 + Int64($1.count) }
        }

        private func isUnused(_ index: Int64) -> Bool {
            let range = Spool.range(ofSegment: index)
            return held.isDisjoint(RangeSet(range)) && !pins.values.contains { $0.overlaps(range) }
        }
    }

    private let state = Mutex(State())
    private let directory: String
    private let fileSystem: any FileSystem
    private let budget: SpoolBudget

    package init(in directory: String, fileSystem: any FileSystem, budget: SpoolBudget) {
        self.directory = directory
        self.fileSystem = fileSystem
        self.budget = budget
    }

    deinit { close() }

    // MARK: Bytes

    /// Writes the bytes. They are held when this returns.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
        let range = offset..<offset + Int64(bytes.count)
        let pin = pin(range)
        defer { unpin(pin) }
        try forEachPart(of: range) { file, place, part in
            let start = Int(part.lowerBound - offset)
            try file.write(
                UnsafeRawBufferPointer(rebasing: bytes[start..<start + part.count]), at: place)
        }
        let added = state.withLock { state in
            let before = RangeSet(range).intersection(state.held)
            state.held.insert(contentsOf: range)
            // Also for a saved chunk that is sent again.
            state.doomed.remove(contentsOf: range)
            return Int64(range.count) - before.ranges.reduce(0) { $0 + Int64($1.count) }
        }
        budget.add(added)
    }

    /// Fills the memory with held bytes from the offset.
    package func read(into memory: UnsafeMutableRawBufferPointer, at offset: Int64) throws {
        try forEachPart(of: offset..<offset + Int64(memory.count)) { file, place, part in
            let start = Int(part.lowerBound - offset)
            let slice = UnsafeMutableRawBufferPointer(
                rebasing: memory[start..<start + part.count])
            guard try file.read(into: slice, at: place) == part.count else {
                throw ByteStoreError.failed("the spool is shorter than what was written to it")
            }
        }
    }

    package func holds(_ range: Range<Int64>) -> Bool {
        state.withLock { RangeSet(range).isSubset(of: $0.held) }
    }

    // MARK: Lifetime of ranges

    /// Keeps the range until ``unpin(_:)``.
    package func pin(_ range: Range<Int64>) -> Int {
        state.withLock { state in
            state.nextPin += 1
            state.pins[state.nextPin] = range
            return state.nextPin
        }
    }

    package func unpin(_ pin: Int) {
        let gone = state.withLock { state in
            state.pins[pin] = nil
            return state.sweep()
        }
        budget.add(-gone)
    }

    /// Removes the range; pinned bytes are removed when they are unpinned.
    package func release(_ range: Range<Int64>) {
        let gone = state.withLock { state in
            state.doomed.formUnion(RangeSet(range).intersection(state.held))
            return state.sweep()
        }
        budget.add(-gone)
    }

    /// Removes everything. Running reads and writes finish.
    package func close() {
        let gone = state.withLock { state in
            defer { state = State(isClosed: true) }
            return state.held.ranges.reduce(0) { $0 + Int64($1.count) }
        }
        budget.add(-gone)
    }

    // MARK: Segments

    private static func segments(of range: Range<Int64>) -> ClosedRange<Int64> {
        range.lowerBound / segmentByteCount...(range.upperBound - 1) / segmentByteCount
    }

    private static func range(ofSegment index: Int64) -> Range<Int64> {
        index * segmentByteCount..<(index + 1) * segmentByteCount
    }

    /// Calls the body for each segment: its file, the offset in it, and the part of the range in
    /// it.
    private func forEachPart(
        of range: Range<Int64>, _ body: (any OpenFile, Int64, Range<Int64>) throws -> Void
    ) throws {
        guard !range.isEmpty else { return }
        for index in Self.segments(of: range) {
            let segment = Self.range(ofSegment: index)
            let part = range.clamped(to: segment)
            try body(try file(ofSegment: index), part.lowerBound - segment.lowerBound, part)
        }
    }

    private func file(ofSegment index: Int64) throws -> any OpenFile {
        if let file = try existing(index) { return file }
        // The name is removed at once: no other process can open the file, and no crash leaves it
        // behind.
        let path = "\(directory)/kedge-spool-\(SessionID.random())"
        let made = try fileSystem.open(path, .createNew)
        try fileSystem.remove(path)
        return try state.withLock { state in
            if state.isClosed { throw ByteStoreError.failed("the staging area is closed") }
            // A concurrent writer may have created the segment.
            if let file = state.segments[index] { return file }
            state.segments[index] = made
            return made
        }
    }

    private func existing(_ index: Int64) throws -> (any OpenFile)? {
        try state.withLock { state in
            if state.isClosed { throw ByteStoreError.failed("the staging area is closed") }
            return state.segments[index]
        }
    }
}

/// Counts the bytes that all spools of a store hold.
package final class SpoolBudget: Sendable {
    private let limit: Int64
    private let used = Mutex<Int64>(0)

    package init(limit: Int64) { self.limit = limit }

    func add(_ byteCount: Int64) { used.withLock { $0 += byteCount } }

    /// Whether saved bytes should be removed.
    var isExceeded: Bool { used.withLock { $0 > limit } }

    /// Bytes that the spools hold now.
    package var usedByteCount: Int64 { used.withLock { $0 } }
}
