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

    @Test(arguments: [(0o600, 0o600), (0o664, 0o664), (0o4755, 0o755)] as [(mode_t, UInt16)])
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
