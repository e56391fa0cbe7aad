/// The bytes of a simulated file, with every change since they were last safe.
struct FileContent: Sendable {
    /// A kind of change.
    enum Edit: Sendable {
        case write(offset: Int, bytes: [UInt8])
        case truncate(byteCount: Int)
    }

    /// Whether a change survives a cut.
    enum Safety: Sendable {
        /// In the page cache; the next sync makes it safe.
        case dirty
        /// Safe, but kept in the list because an earlier change is not.
        case synced
        /// Its sync failed: the kernel took the page for clean, and no later sync writes it
        /// (fsync(2)).
        case forgotten
    }

    struct Change: Sendable {
        var edit: Edit
        var safety = Safety.dirty
    }

    /// The unit in which a disk writes: a torn write has some of its sectors and not others.
    static let sectorSize = 512

    /// The bytes that programs read.
    private(set) var current: [UInt8] = []
    private var durable: [UInt8] = []
    private var changes: [Change] = []

    mutating func edit(_ edit: Edit) {
        Self.apply(edit, to: &current)
        changes.append(Change(edit: edit))
    }

    mutating func sync() {
        for index in changes.indices where changes[index].safety == .dirty {
            changes[index].safety = .synced
        }
        guard changes.allSatisfy({ $0.safety == .synced }) else { return }
        durable = current
        changes = []
    }

    mutating func failSync() {
        for index in changes.indices where changes[index].safety == .dirty {
            changes[index].safety = .forgotten
        }
    }

    /// The content after a power cut: of every unsafe change, all, nothing, or some sectors.
    func surviving(_ fate: inout CutFate) -> FileContent {
        var content = FileContent()
        content.durable = durable
        for change in changes {
            if change.safety == .synced {
                Self.apply(change.edit, to: &content.durable)
            } else {
                Self.apply(change.edit, partly: &fate, to: &content.durable)
            }
        }
        content.current = content.durable
        return content
    }

    private static func apply(
        _ edit: Edit, partly fate: inout CutFate, to bytes: inout [UInt8]
    ) {
        guard case .write(let offset, let written) = edit else {
            if fate.survives() { apply(edit, to: &bytes) }
            return
        }
        switch fate.ofWrite() {
        case .survives: apply(edit, to: &bytes)
        case .vanishes: break
        case .tears:
            var start = 0
            while start < written.count {
                // Up to the next sector border of the file.
                let length = sectorSize - (offset + start) % sectorSize
                let end = min(start + length, written.count)
                if fate.survives() {
                    let sector = Array(written[start..<end])
                    apply(.write(offset: offset + start, bytes: sector), to: &bytes)
                }
                start = end
            }
        }
    }

    private static func apply(_ edit: Edit, to bytes: inout [UInt8]) {
        switch edit {
        case .write(let offset, let written):
            let end = offset + written.count
            if bytes.count < end { bytes += [UInt8](repeating: 0, count: end - bytes.count) }
            bytes.replaceSubrange(offset..<end, with: written)
        case .truncate(let byteCount):
            if byteCount < bytes.count { bytes.removeLast(bytes.count - byteCount) }
            bytes += [UInt8](repeating: 0, count: byteCount - bytes.count)
        }
    }
}
