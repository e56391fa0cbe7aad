/// The effect of a power cut on unsynced changes.
package enum Cut: Sendable, Hashable, CustomStringConvertible {
    /// No unsynced change is there.
    case losesAll
    /// Everything is there, synced or not. This is the most that a server can find and never
    /// acknowledged.
    case keepsAll
    /// Each change by itself is there, gone, or torn at sector borders, drawn from the seed.
    case random(seed: UInt64)

    package var description: String {
        switch self {
        case .losesAll: "losing all"
        case .keepsAll: "keeping all"
        case .random(let seed): "seed \(seed)"
        }
    }
}

/// Draws the fate of each change.
struct CutFate {
    enum OfWrite {
        case survives
        case vanishes
        case tears
    }

    private let cut: Cut
    private var generator: SplitMix64

    init(_ cut: Cut) {
        self.cut = cut
        if case .random(let seed) = cut {
            generator = SplitMix64(seed: seed)
        } else {
            generator = SplitMix64(seed: 0)
        }
    }

    mutating func survives() -> Bool {
        switch cut {
        case .losesAll: false
        case .keepsAll: true
        case .random: Bool.random(using: &generator)
        }
    }

    mutating func ofWrite() -> OfWrite {
        switch cut {
        case .losesAll: return .vanishes
        case .keepsAll: return .survives
        case .random:
            let all: [OfWrite] = [.survives, .vanishes, .tears]
            return all[Int.random(in: 0..<all.count, using: &generator)]
        }
    }
}

extension DiskImage {
    /// The disk after a power cut at this moment.
    ///
    /// Synced changes are there. Every other change is there, gone or torn, independently of the
    /// others: a disk and its file system may write in any order between two flushes. Only a rename
    /// never loses both of its names.
    package func surviving(_ cut: Cut) -> DiskImage {
        var fate = CutFate(cut)
        var image = self
        // In a fixed order, so that a seed means one image.
        for number in inodes.keys.sorted() {
            guard let inode = inodes[number] else { continue }
            image.inodes[number]?.content = inode.content.surviving(&fate)
        }
        image.settleNames(&fate)
        image.prune(keeping: [])
        return image
    }

    private mutating func settleNames(_ fate: inout CutFate) {
        var survivors: Set<Int> = []
        for change in nameChanges where fate.survives() { survivors.insert(change.number) }
        for change in nameChanges {
            guard let counterpart = change.counterpart else { continue }
            if survivors.contains(change.number) {
                survivors.insert(counterpart)
            } else if change.isAtomic, survivors.contains(counterpart) {
                survivors.insert(change.number)
            }
        }
        for change in nameChanges where survivors.contains(change.number) {
            inodes[change.directory]?.durableNames[change.name] = change.inode
        }
        nameChanges = []
        for number in inodes.keys {
            guard let names = inodes[number]?.durableNames else { continue }
            inodes[number]?.names = names
        }
    }
}
