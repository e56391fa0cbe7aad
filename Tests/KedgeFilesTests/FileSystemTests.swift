import Glibc
import KedgeFiles
import KedgeTesting
import Testing

struct FileSystemTests {
    private let directory: TemporaryDirectory
    private let files = POSIXFileSystem()

    init() throws { directory = try TemporaryDirectory() }

    private func path(_ name: String) -> String { directory.path + "/" + name }

    private func make(_ name: String, _ bytes: [UInt8] = []) throws {
        let file = try files.open(path(name), .createNew)
        try file.write(bytes, at: 0)
        try file.close()
    }

    private func content(_ name: String) throws -> [UInt8] {
        try files.open(path(name), .read).bytes(at: 0, count: 100)
    }

    private func expect(
        _ code: FileError.Code, at location: SourceLocation = #_sourceLocation,
        _ body: () throws -> Void
    ) {
        let error = #expect(throws: FileError.self, sourceLocation: location) { try body() }
        #expect(error?.code == code, sourceLocation: location)
    }

    @Test(arguments: [OpenMode.read, .readFollowingLinks, .readWrite])
    func `opening a file that does not exist fails`(mode: OpenMode) {
        expect(.notFound) { _ = try files.open(path("absent"), mode) }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [OpenMode.read, .readFollowingLinks])
    func `opening a pipe does not wait for a writer`(mode: OpenMode) throws {
        #expect(mkfifo(path("pipe"), 0o600) == 0)
        #expect(try files.open(path("pipe"), mode).status().isRegularFile == false)
    }

    @Test func `creating an existing file fails, opening or creating it does not`() throws {
        try make("a", [1])
        expect(.exists) { _ = try files.open(path("a"), .createNew) }
        #expect(try files.open(path("a"), .openOrCreate).bytes(at: 0, count: 9) == [1])
        #expect(try files.open(path("b"), .openOrCreate).status().byteCount == 0)
    }

    /// R131: other users cannot read files in transfer.
    @Test func `new files and directories are private to their owner`() throws {
        try make("a")
        try files.open(path("b"), .openOrCreate).close()
        try files.makeDirectory(path("c"))
        #expect(TemporaryDirectory.mode(of: path("a")) == 0o600)
        #expect(TemporaryDirectory.mode(of: path("b")) == 0o600)
        #expect(TemporaryDirectory.mode(of: path("c")) == 0o700)
    }

    @Test func `a symbolic link is followed only by the mode that asks for it`() throws {
        try make("a", [1])
        #expect(symlink(path("a"), path("link")) == 0)
        for mode in [OpenMode.read, .readWrite, .createNew, .openOrCreate] {
            #expect(throws: FileError.self) { try files.open(path("link"), mode) }
        }
        #expect(try files.open(path("link"), .readFollowingLinks).bytes(at: 0, count: 9) == [1])
        #expect(try files.status(of: path("link"))?.isRegularFile == false)
    }

    @Test func `the status of a path that does not exist is nil`() throws {
        try make("a")
        #expect(try files.status(of: path("absent")) == nil)
        #expect(try files.status(of: path("a/below a file")) == nil)
        #expect(try files.status(of: directory.path)?.isDirectory == true)
    }

    @Test func `making an existing directory is no error, making one over a file is`() throws {
        try files.makeDirectory(path("d"))
        try files.makeDirectory(path("d"))
        try make("a")
        expect(.exists) { try files.makeDirectory(path("a")) }
        expect(.notFound) { try files.makeDirectory(path("x/y")) }
    }

    @Test func `the list of a directory has every name but the two dots`() throws {
        try make("a")
        try make(".b")
        try make("ü x")
        try files.makeDirectory(path("d"))
        #expect(Set(try files.list(directory.path)) == ["a", ".b", "ü x", "d"])
        #expect(try files.list(path("d")) == [])
        expect(.notFound) { _ = try files.list(path("absent")) }
    }

    @Test func `a rename replaces its target unless replacing is forbidden`() throws {
        try make("a", [1])
        try make("b", [2])
        try files.rename(path("a"), to: path("b"))
        #expect(try content("b") == [1])
        #expect(try files.status(of: path("a")) == nil)
        try make("c", [3])
        expect(.exists) { try files.renameWithoutReplacing(path("c"), to: path("b")) }
        #expect(try content("b") == [1])
        #expect(try content("c") == [3])
        try files.renameWithoutReplacing(path("c"), to: path("d"))
        #expect(try content("d") == [3])
        #expect(try files.status(of: path("c")) == nil)
        expect(.notFound) { try files.rename(path("absent"), to: path("e")) }
        expect(.notFound) { try files.renameWithoutReplacing(path("absent"), to: path("e")) }
    }

    @Test func `removing a file reports whether it existed`() throws {
        try make("a")
        #expect(try files.remove(path("a")))
        #expect(try !files.remove(path("a")))
        #expect(throws: FileError.self) { _ = try files.remove(directory.path) }
    }

    @Test func `removing an open file leaves its bytes readable`() throws {
        try make("a", [1])
        let file = try files.open(path("a"), .read)
        _ = try files.remove(path("a"))
        #expect(try file.bytes(at: 0, count: 9) == [1])
    }

    @Test func `syncing a directory fails for a file and for a missing path`() throws {
        try files.syncDirectory(directory.path)
        try make("a")
        #expect(throws: FileError.self) { try files.syncDirectory(path("a")) }
        expect(.notFound) { try files.syncDirectory(path("absent")) }
    }

    @Test func `free space is reported for existing paths only`() throws {
        #expect(try files.availableBytes(at: directory.path) > 0)
        expect(.notFound) { _ = try files.availableBytes(at: path("absent")) }
    }

    @Test(
        arguments: [
            (ENOENT, .notFound), (EEXIST, .exists), (ENOSPC, .noSpace), (EDQUOT, .noSpace),
            (EFBIG, .noSpace), (EACCES, .permission), (EPERM, .permission), (EROFS, .readOnly),
            (EMFILE, .tooManyOpen), (ENFILE, .tooManyOpen), (EWOULDBLOCK, .locked), (EIO, .io),
            (EBADF, .other), (0, .other),
        ] as [(Int32, FileError.Code)])
    func `an error number has one code, and errors with equal codes are equal`(
        number: Int32, code: FileError.Code
    ) {
        let error = FileError(operation: "open", path: "/secret/path", number: number)
        #expect(error.code == code)
        #expect(error == FileError(operation: "pwrite", path: "/other", number: number))
        // The description that strangers may see names no path.
        #expect(!"\(error)".contains("secret"))
        #expect(error.debugDescription.contains("/secret/path"))
    }
}
