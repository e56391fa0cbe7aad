import Glibc
import KedgeFiles
import KedgeSecrets
import KedgeServer
import KedgeTesting
import Testing

struct MasterKeyFileTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path + "/master.key"
    }

    private func file(
        _ path: String? = nil, in fileSystem: any FileSystem = POSIXFileSystem()
    ) -> MasterKeyFile {
        MasterKeyFile(path: path ?? self.path, isDefault: true, in: fileSystem)
    }

    private func write(_ text: String, mode: mode_t = 0o600) throws {
        let file = try POSIXFileSystem().open(path, .openOrCreate)
        try file.truncate(to: 0)
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
        try file.close()
        #expect(chmod(path, mode) == 0)
    }

    /// Returns the reason why the file is refused.
    private func refusal(
        _ path: String? = nil, mayCreate: Bool = false
    ) throws -> MasterKeyFileError.Reason? {
        do {
            _ = try file(path).load(mayCreate: mayCreate)
            return nil
        } catch let error as MasterKeyFileError {
            #expect("\(error)".contains(path ?? self.path))
            return error.reason
        }
    }

    @Test func `a file that is missing is made once, for its user alone`() throws {
        let keys = try file().load(mayCreate: true)
        #expect(TemporaryDirectory.mode(of: path) == 0o600)
        #expect(try file().load(mayCreate: true).fingerprints == keys.fingerprints)
        #expect(try file().load(mayCreate: false).fingerprints == keys.fingerprints)
        #expect(keys.fingerprints.count == 1)
        #expect(try POSIXFileSystem().list(directory.path) == ["master.key"])
    }

    @Test func `a file that is missing is not made where it was named`() throws {
        guard case .unusable(let error) = try refusal() else {
            Issue.record("a missing file was accepted")
            return
        }
        #expect(error.code == .notFound)
        #expect(try POSIXFileSystem().list(directory.path) == [])
    }

    @Test(arguments: [0o640, 0o604, 0o644, 0o660, 0o620, 0o601] as [mode_t])
    func `a file that others may use is refused`(mode: mode_t) throws {
        try write(MasterKey.generate().text + "\n", mode: mode)
        guard case .readableByOthers(let found) = try refusal() else {
            Issue.record("mode \(mode) was accepted")
            return
        }
        #expect(mode_t(found) == mode)
    }

    @Test(arguments: [0o600, 0o400] as [mode_t])
    func `a file with several keys is read, also behind a link`(mode: mode_t) throws {
        let keys = (0..<3).map { _ in MasterKey.generate() }
        try write(keys.map { $0.text + "\n" }.joined(), mode: mode)
        let link = directory.path + "/secret"
        #expect(symlink(path, link) == 0)
        for place in [path, link] {
            let loaded = try file(place).load(mayCreate: true)
            #expect(loaded.first.fingerprint == keys[0].fingerprint)
            #expect(loaded.fingerprints == Set(keys.map(\.fingerprint)))
        }
    }

    @Test func `a file without keys is refused and stays`() throws {
        for text in ["", "\n", "no key\n"] {
            try write(text)
            guard case .malformed = try refusal(mayCreate: true) else {
                Issue.record("accepted: \(text)")
                return
            }
            #expect(try POSIXFileSystem().status(of: path)?.byteCount == Int64(text.utf8.count))
        }
    }

    @Test func `a directory, a pipe and a large file are refused at once`() throws {
        let pipe = directory.path + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        try write(String(repeating: "\n", count: (64 << 10) + 1))
        for place in [directory.path, pipe, path] {
            guard case .notKeys = try refusal(place) else {
                Issue.record("accepted: \(place)")
                return
            }
        }
    }

    /// Also a start that ended at any step must not keep the next one from its key.
    @Test func `a failure of any step leaves a whole file or none`() throws {
        for position in 0..<40 {
            let faulty = FaultyFileSystem()
            let place = directory.path + "/\(position).key"
            faulty.fail(after: position, with: ENOSPC)
            do {
                _ = try file(place, in: faulty).load(mayCreate: true)
            } catch is MasterKeyFileError {
                #expect(faulty.hasFailed)
            }
            faulty.heal()
            let keys = try file(place, in: faulty).load(mayCreate: true)
            #expect(keys.fingerprints.count == 1)
            #expect(TemporaryDirectory.mode(of: place) == 0o600)
            if !faulty.hasFailed { return }
        }
        Issue.record("making a file has fewer steps than this")
    }

    @Test func `a file left behind by a start that was cut off is replaced`() throws {
        let left = try POSIXFileSystem().open(path + ".new", .createNew)
        try left.close()
        _ = try file().load(mayCreate: true)
        #expect(try POSIXFileSystem().list(directory.path) == ["master.key"])
    }
}
