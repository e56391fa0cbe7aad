import Glibc
import KedgeFiles
import KedgeTesting
import Testing

/// The simulated disk loses what a real one may lose, and nothing else.
struct SimulatedDiskTests {
    private let disk = SimulatedDisk()

    @discardableResult
    private func make(_ path: String, _ bytes: [UInt8] = [], synced: Bool = false) throws
        -> any OpenFile
    {
        let file = try disk.open(path, .createNew)
        try file.write(bytes, at: 0)
        if synced {
            try file.syncData()
            try disk.syncDirectory("/")
        }
        return file
    }

    /// Returns the contents at the path after power cuts of every kind.
    private func outcomes(_ path: String, cuts: [Cut] = everyCut) -> Set<[UInt8]?> {
        let image = disk.image
        return Set(cuts.map { image.surviving($0).content(at: path) })
    }

    private static let everyCut: [Cut] =
        [.losesAll, .keepsAll] + (0..<100).map { .random(seed: $0) }

    @Test func `synced bytes survive every power cut`() throws {
        try make("/a", [1, 2, 3], synced: true)
        #expect(outcomes("/a") == [[1, 2, 3]])
    }

    @Test func `unsynced bytes may survive a power cut or not`() throws {
        let file = try make("/a", [1], synced: true)
        try file.write([2], at: 0)
        try file.write([3], at: 1)
        // Writes survive in any order: the second may be there without the first.
        #expect(outcomes("/a") == [[1], [2], [1, 3], [2, 3]])
    }

    @Test func `an unsynced write tears at sector borders`() throws {
        let file = try make("/a", [UInt8](repeating: 1, count: 1024), synced: true)
        try file.write([UInt8](repeating: 2, count: 1024), at: 0)
        let old = [UInt8](repeating: 1, count: 512)
        let new = [UInt8](repeating: 2, count: 512)
        #expect(outcomes("/a") == [old + old, old + new, new + old, new + new])
    }

    @Test func `a synced file without a synced name may vanish`() throws {
        let file = try make("/a", [1])
        try file.syncData()
        #expect(outcomes("/a") == [nil, [1]])
        try disk.syncDirectory("/")
        #expect(outcomes("/a") == [[1]])
    }

    @Test func `a rename shows the old name or the new one, never none or both`() throws {
        try make("/a", [1], synced: true)
        try make("/b", [2], synced: true)
        try disk.rename("/a", to: "/b")
        let found = Self.everyCut.map { cut in
            let image = disk.image.surviving(cut)
            return [image.content(at: "/a"), image.content(at: "/b")]
        }
        #expect(Set(found) == [[[1], [2]], [nil, [1]]])
        try disk.syncDirectory("/")
        #expect(outcomes("/b") == [[1]])
    }

    @Test func `a rename between directories never loses the file`() throws {
        try disk.makeDirectory("/from")
        try disk.makeDirectory("/to")
        try make("/from/a", [1]).syncData()
        for path in ["/", "/from"] { try disk.syncDirectory(path) }
        try disk.renameWithoutReplacing("/from/a", to: "/to/a")
        let before = Self.everyCut.map { disk.image.surviving($0).paths }
        #expect(Set(before) == [["/from/a"], ["/to/a"], ["/from/a", "/to/a"]])
        // The sync that removes the old name makes the new one durable with it.
        try disk.syncDirectory("/from")
        let after = Self.everyCut.map { disk.image.surviving($0).paths }
        #expect(Set(after) == [["/to/a"]])
    }

    @Test func `a removed file may come back until its directory is synced`() throws {
        try make("/a", [1], synced: true)
        #expect(try disk.remove("/a"))
        #expect(try !disk.remove("/a"))
        #expect(outcomes("/a") == [nil, [1]])
        try disk.syncDirectory("/")
        #expect(outcomes("/a") == [nil])
    }

    @Test func `a sync after a failed one succeeds and makes nothing durable`() throws {
        let file = try make("/a", [1], synced: true)
        try file.write([2], at: 0)
        disk.plan(.init(after: 0, of: .syncData, with: EIO))
        #expect(throws: FileError.self) { try file.syncData() }
        try file.syncData()
        #expect(outcomes("/a") == [[1], [2]])
        // Bytes written later become durable and are never replaced by the lost ones.
        try file.write([3], at: 0)
        try file.syncData()
        #expect(outcomes("/a") == [[3]])
    }

    @Test func `a directory whose sync failed is synced only after another change`() throws {
        try make("/a", [1]).syncData()
        disk.plan(.init(after: 0, of: .syncDirectory, with: EIO))
        #expect(throws: FileError.self) { try disk.syncDirectory("/") }
        try disk.syncDirectory("/")
        #expect(outcomes("/a") == [nil, [1]])
        try make("/b")
        try disk.syncDirectory("/")
        #expect(outcomes("/a") == [[1]])
    }

    @Test func `a failed write leaves its first half`() throws {
        let file = try make("/a")
        disk.plan(.init(after: 0, of: .write, with: ENOSPC))
        #expect(throws: FileError.self) { try file.write([1, 2, 3, 4], at: 0) }
        #expect(disk.hasFailed)
        #expect(disk.image.content(at: "/a") == [1, 2])
    }

    @Test func `a lasting fault repeats until it is removed`() throws {
        let file = try make("/a")
        disk.plan(.init(after: 1, of: .write, with: ENOSPC, isLasting: true))
        try file.write([1], at: 0)
        for _ in 0..<3 { #expect(throws: FileError.self) { try file.write([2], at: 0) } }
        disk.plan(nil)
        try file.write([3], at: 0)
        #expect(disk.image.content(at: "/a") == [3])
    }

    @Test func `a write to a full disk fails for want of space`() throws {
        let disk = SimulatedDisk(capacity: 10)
        let file = try disk.open("/a", .createNew)
        try file.write([UInt8](repeating: 1, count: 8), at: 0)
        #expect(try disk.availableBytes(at: "/") == 2)
        let error = #expect(throws: FileError.self) { try file.write([1, 2, 3, 4], at: 8) }
        #expect(error?.code == .noSpace)
        try file.write([2], at: 0)
    }

    @Test func `open descriptors are counted and keep their files and locks`() throws {
        let file = try make("/a", [1])
        try file.lockExclusively()
        let other = try disk.open("/a", .read)
        #expect(throws: FileError.self) { try other.lockExclusively() }
        #expect(disk.openFileCount == 2)
        #expect(try disk.remove("/a"))
        #expect(try file.bytes(at: 0, count: 9) == [1])
        try file.close()
        try other.lockExclusively()
        try other.close()
        #expect(disk.openFileCount == 0)
        #expect(throws: FileError.self) { try file.syncData() }
    }

    @Test func `no call succeeds after the power is off`() throws {
        let file = try make("/a", [1])
        disk.powerOff()
        #expect(throws: FileError.self) { try file.write([2], at: 0) }
        #expect(throws: FileError.self) { try disk.list("/") }
        #expect(disk.image.content(at: "/a") == [1])
    }

    @Test(arguments: SimulatedDisk.Mutation.allCases)
    func `a disk that ignores syncs loses synced bytes`(
        mutation: SimulatedDisk.Mutation
    ) throws {
        let disk = SimulatedDisk(mutation: mutation)
        let file = try disk.open("/a", .createNew)
        try file.write([1], at: 0)
        try file.syncData()
        try disk.syncDirectory("/")
        #expect(disk.image.surviving(.losesAll).content(at: "/a") != [1])
    }

    @Test func `a seed determines the image that survives`() throws {
        for name in ["/a", "/b", "/c", "/d"] { try make(name, [1, 2, 3]) }
        let images = (0..<20).map { _ in disk.image.surviving(.random(seed: 7)).paths }
        #expect(Set(images).count == 1)
    }

    @Test func `missing parents and names are distinguished from existing ones`() throws {
        #expect(throws: FileError.self) { _ = try disk.open("/no/a", .createNew) }
        #expect(throws: FileError.self) { _ = try disk.open("/no", .read) }
        #expect(throws: FileError.self) { try disk.rename("/no", to: "/a") }
        #expect(try disk.status(of: "/no") == nil)
        try disk.makeDirectory("/d")
        try disk.makeDirectory("/d")
        #expect(try disk.list("/") == ["d"])
        #expect(try disk.status(of: "/d")?.isDirectory == true)
        try make("/a")
        #expect(try disk.status(of: "/d/.")?.isDirectory == true)
        #expect(try disk.status(of: "/a/.") == nil)
        try make("/b")
        let error = #expect(throws: FileError.self) {
            try disk.renameWithoutReplacing("/a", to: "/b")
        }
        #expect(error?.code == .exists)
    }
}
