/// How a power cut treats what was not yet safe.
package enum Cut: Sendable, Hashable, CustomStringConvertible {
    /// Nothing that was not synced is there.
    case losesAll
    /// Everything is there, synced or not: the most a server can find that it never acknowledged.
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

/// Draws what becomes of each change.
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
    /// The disk as it is found after the power went at this moment.
    ///
    /// What was synced is there. Every other change is there, gone or torn, independently of the
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
