import Glibc
import KedgeClient
import KedgeFiles
import KedgeHash
import KedgeLocks
import KedgeModel
import Testing

/// R96: a user who may rename files in a download's folder can swap the verified file for another
/// one. The client never reports that file as verified.
@Suite(.timeLimit(.minutes(1))) struct PromotionTests {
    /// The moment at which the file is swapped.
    enum Moment: CaseIterable, Sendable {
        /// After the bytes were verified, before the name is checked.
        case beforeLook
        /// After the name was checked.
        case beforeRename
    }

    private let bytes = TransferEnvironment.bytes(200_000)
    private let forged = TransferEnvironment.bytes(200_000, seed: 66)

    private func download(
        _ fixture: TransferEnvironment, _ disk: SwappingDisk, _ reference: RemoteReference,
        overwrites: Bool
    ) async throws -> TransferSnapshot {
        var environment = fixture.environment
        environment.files = disk
        var configuration = ClientConfiguration(
            serverURL: FakeServer.base, stateDirectory: fixture.path("state"))
        configuration.chunkSize = 64 << 10
        let client = try await TransferClient(
            configuration: configuration, transport: fixture.server, environment: environment)
        let id = try await client.enqueueDownload(
            reference, to: fixture.path("out.bin"), options: DownloadOptions(overwrites: overwrites)
        )
        return try await client.run(id)
    }

    @Test(arguments: Moment.allCases, [false, true])
    func `a file that was swapped is never reported as verified`(
        moment: Moment, overwrites: Bool
    ) async throws {
        let fixture = try TransferEnvironment()
        let file = fixture.addFile(bytes)
        let disk = SwappingDisk(forged, at: moment)
        let snapshot = try await download(fixture, disk, .file(file), overwrites: overwrites)
        #expect(disk.swapCount == 1)
        let isForged = fixture.read("out.bin") == forged
        let isWhole = fixture.read("out.bin") == bytes
        #expect(snapshot.state == .completed ? isWhole : snapshot.state == .failed)
        #expect(!(snapshot.state == .completed && isForged))
        // Where nothing was lost yet, the download heals by itself.
        if moment == .beforeLook || overwrites { #expect(snapshot.state == .completed) }
    }

    @Test func `a download fails when its file is swapped every time`() async throws {
        let fixture = try TransferEnvironment()
        let file = fixture.addFile(bytes)
        let disk = SwappingDisk(forged, at: .beforeLook, count: 100)
        let snapshot = try await download(fixture, disk, .file(file), overwrites: true)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .integrityMismatch)
    }

    @Test(
        arguments: [(0o600, 0o600), (0o664, 0o664), (0o4755, 0o755), (0o444, 0o444)]
            as [(mode_t, UInt16)])
    func `a file that replaces another one has its permissions`(
        before: mode_t, after: UInt16
    ) async throws {
        let fixture = try TransferEnvironment()
        let path = try fixture.write("out.bin", [1])
        chmod(path, before)
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(
            .file(fixture.addFile(bytes)), to: path, options: DownloadOptions(overwrites: true))
        #expect(try await client.run(id).state == .completed)
        #expect(fixture.read("out.bin") == bytes)
        #expect(try POSIXFileSystem().status(of: path)?.permissions == after)
    }

    @Test func `an unfinished file can be opened again although it replaces a protected one`()
        async throws
    {
        let fixture = try TransferEnvironment()
        let path = try fixture.write("out.bin", [1])
        chmod(path, 0o440)
        let disk = ObservingDisk()
        var environment = fixture.environment
        environment.files = disk
        let client = try await TransferClient(
            configuration: ClientConfiguration(
                serverURL: FakeServer.base, stateDirectory: fixture.path("state")),
            transport: fixture.server, environment: environment)
        let id = try await client.enqueueDownload(
            .file(fixture.addFile(bytes)), to: path, options: DownloadOptions(overwrites: true))
        #expect(try await client.run(id).state == .completed)
        #expect(disk.permissions.withLock { $0 } == 0o640)
        #expect(try POSIXFileSystem().status(of: path)?.permissions == 0o440)
    }

    @Test(
        arguments: [
            (0o666, 1, 1, 0o666), (0o666, 2, 1, nil), (0o600, 2, 1, 0o600), (0o400, 2, 2, 0o600),
            (0o604, 1, 2, 0o604),
            (0o606, 1, 2, 0o606),
        ] as [(UInt16, UInt32, UInt32, UInt16?)])
    func `only permissions of a file of the same user and group are kept`(
        before: UInt16, owner: UInt32, group: UInt32, after: UInt16?
    ) {
        let kept = TempFile.permissions(
            of: status(0o600, owner: 1, group: 1),
            replacing: status(before, owner: owner, group: group))
        #expect(kept == after ?? FileCreationMask.newFilePermissions)
    }

    @Test func `a group that the new file does not have gets the rights of a new file`() {
        let kept = TempFile.permissions(
            of: status(0o600, owner: 1, group: 1), replacing: status(0o670, owner: 1, group: 2))
        #expect(kept == 0o600 | FileCreationMask.newFilePermissions & 0o070)
    }

    private func status(_ permissions: UInt16, owner: UInt32, group: UInt32) -> FileStatus {
        FileStatus(
            byteCount: 1, modifiedNanoseconds: 0, isDirectory: false, isRegularFile: true,
            device: 1, inode: 1, permissions: permissions, ownerID: owner, groupID: group)
    }
}

/// A disk that notes the permissions of a file before it gets its final name.
private final class ObservingDisk: ForwardingFileSystem {
    let base = POSIXFileSystem()
    let permissions = Mutex<UInt16?>(nil)

    func rename(_ source: String, to target: String) throws(FileError) {
        let found = try base.status(of: source)?.permissions
        permissions.withLock { $0 = found }
        try base.rename(source, to: target)
    }
}

/// A disk on which another program swaps a temporary file for its own.
private final class SwappingDisk: ForwardingFileSystem {
    let base = POSIXFileSystem()
    private let forged: [UInt8]
    private let moment: PromotionTests.Moment
    private let left: Mutex<Int>
    private let swaps = Mutex(0)

    init(_ forged: [UInt8], at moment: PromotionTests.Moment, count: Int = 1) {
        self.forged = forged
        self.moment = moment
        left = Mutex(count)
    }

    var swapCount: Int { swaps.withLock { $0 } }

    private func swap(_ path: String) throws(FileError) {
        let isDue = left.withLock { left in
            defer { left -= 1 }
            return left > 0
        }
        guard isDue else { return }
        swaps.withLock { $0 += 1 }
        try base.rename(path, to: path + ".stolen")
        let file = try base.open(path, .createNew)
        let written = forged.withUnsafeBytes { bytes in
            Result { () throws(FileError) in try file.write(bytes, at: 0) }
        }
        try written.get()
        try file.close()
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        let file = try base.open(path, mode)
        guard path.hasSuffix(".kedge-part"), moment == .beforeLook else { return file }
        return SwappedFile(base: file) { [weak self] () throws(FileError) in try self?.swap(path) }
    }

    func rename(_ source: String, to target: String) throws(FileError) {
        if moment == .beforeRename { try swap(source) }
        try base.rename(source, to: target)
    }

    func renameWithoutReplacing(_ source: String, to target: String) throws(FileError) {
        if moment == .beforeRename { try swap(source) }
        try base.renameWithoutReplacing(source, to: target)
    }
}

/// A file that is swapped for another one while it is being synced.
private final class SwappedFile: ForwardingFile {
    let base: any OpenFile
    private let swap: @Sendable () throws(FileError) -> Void

    init(base: any OpenFile, swap: @escaping @Sendable () throws(FileError) -> Void) {
        self.base = base
        self.swap = swap
    }

    func syncData() throws(FileError) {
        try base.syncData()
        try swap()
    }
}
