import Glibc
import KedgeFiles
import KedgeTesting
import Testing

struct DirectoryRequirementsTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.path + "/data" }

    init() throws { directory = try TemporaryDirectory() }

    @Test(arguments: [0o770, 0o702, 0o777, 0o1777, 0o720] as [UInt16])
    func `a data directory that other users may write to is refused unless allowed`(
        permissions: UInt16
    ) throws {
        try POSIXFileSystem().makeDirectory(path)
        #expect(chmod(path, mode_t(permissions)) == 0)
        let violation = DirectoryRequirements.Violation.writableByOthers(permissions: permissions)
        #expect(throws: violation) { try check() }
        try check(DirectoryRequirements(allowsOtherWriters: true))
    }

    @Test(arguments: [0o700, 0o750, 0o755] as [UInt16])
    func `a data directory that only its owner may write to is accepted`(permissions: UInt16) throws
    {
        try POSIXFileSystem().makeDirectory(path)
        #expect(chmod(path, mode_t(permissions)) == 0)
        try check()
    }

    /// A link's own mode is always 0777.
    @Test func `a symbolic link to a data directory is judged by the directory's mode`() throws {
        let target = directory.path + "/target"
        try POSIXFileSystem().makeDirectory(target)
        #expect(symlink(target, path) == 0)
        try check()
        #expect(chmod(target, 0o777) == 0)
        #expect(throws: DirectoryRequirements.Violation.self) { try check() }
    }

    @Test(arguments: ["", "/below/it"])
    func `a network file system is refused unless allowed, also for a directory to be made`(
        rest: String
    ) throws {
        let files = NetworkDisk()
        let violation = DirectoryRequirements.Violation.onNetwork(fileSystem: "nfs")
        #expect(throws: violation) {
            try DirectoryRequirements().check(path + rest, in: files)
        }
        try DirectoryRequirements(allowsNetwork: true).check(path + rest, in: files)
        try check()
    }

    @Test(arguments: [
        ("", false, false), ("shared", true, false), ("network", false, true),
        ("shared,network", true, true), ("network, shared", true, true),
    ])
    func `the setting names what is allowed`(text: String, shared: Bool, network: Bool) {
        let expected = DirectoryRequirements(allowsOtherWriters: shared, allowsNetwork: network)
        #expect(DirectoryRequirements(text: text) == expected)
    }

    @Test(arguments: ["all", "shared,", ",", "Shared", "shared network"])
    func `any other text of the setting is refused`(text: String) {
        #expect(DirectoryRequirements(text: text) == nil)
    }

    private func check(_ requirements: DirectoryRequirements = DirectoryRequirements()) throws {
        try requirements.check(path, in: POSIXFileSystem())
    }
}

struct NetworkFileSystemTests {
    private static let mounts = """
        22 28 0:20 / /proc rw,nosuid - proc proc rw
        28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
        71 28 0:44 / /media/far rw,nosuid shared:40 master:2 - fuse.sshfs far: rw,user_id=0
        72 28 0:45 / /media/stick rw - fuseblk /dev/sdb1 rw
        74 28 0:46 /export - rw - nfs4 server:/export rw,vers=4.2
        75 28 0:47 / /media/c rw,noatime - 9p drvfs rw
        73 28 0:300 / /media/over rw - fuse.fuse-overlayfs overlay rw
        """

    /// Combines the two numbers as makedev(3) does.
    private static func device(_ major: UInt64, _ minor: UInt64) -> UInt64 {
        (major & 0xFFF) << 8 | (major & ~0xFFF) << 32 | minor & 0xFF | (minor & ~0xFF) << 12
    }

    @Test func `a network mount has the name of its file system type`() {
        let name = { NetworkFileSystem.name(ofDevice: $0, in: Self.mounts) }
        #expect(name(Self.device(0, 46)) == "nfs4")
        #expect(name(Self.device(0, 47)) == "9p")
        #expect(name(Self.device(0, 44)) == "fuse.sshfs")
        #expect(name(Self.device(0, 45)) == nil)
        #expect(name(Self.device(0, 300)) == nil)
        #expect(name(Self.device(254, 1)) == nil)
        #expect(name(Self.device(7, 7)) == nil)
    }
}

private struct NetworkDisk: ForwardingFileSystem {
    let base = POSIXFileSystem()

    func networkFileSystem(at path: String) throws(FileError) -> String? {
        // Fails for a path that does not exist.
        _ = try base.networkFileSystem(at: path)
        return "nfs"
    }
}
