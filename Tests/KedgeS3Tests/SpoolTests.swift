import KedgeEngine
import KedgeFiles
import KedgeS3
import KedgeTesting
import KedgeTransport
import Testing

struct SpoolTests {
    private struct Environment {
        let directory: TemporaryDirectory
        let budget = SpoolBudget(limit: 1000)
        let spool: Spool

        init() throws {
            directory = try TemporaryDirectory()
            spool = Spool(in: directory.path, fileSystem: POSIXFileSystem(), budget: budget)
        }

        func write(_ bytes: [UInt8], at offset: Int64) throws {
            try bytes.withUnsafeBytes { try spool.write($0, at: offset) }
        }

        func read(_ range: Range<Int64>) throws -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: range.count)
            try bytes.withUnsafeMutableBytes { try spool.read(into: $0, at: range.lowerBound) }
            return bytes
        }
    }

    private static let edge = Spool.segmentByteCount

    @Test func `bytes read back across segments, from files without names`() throws {
        let fixture = try Environment()
        try fixture.write([1, 2, 3, 4], at: Self.edge - 2)
        #expect(try fixture.read(Self.edge - 1..<Self.edge + 2) == [2, 3, 4])
        #expect(fixture.spool.holds(Self.edge - 2..<Self.edge + 2))
        #expect(!fixture.spool.holds(Self.edge - 3..<Self.edge + 2))
        #expect(try POSIXFileSystem().list(fixture.directory.path) == [])
        #expect(try fixture.directory.openDescriptorCount() == 2)
    }

    @Test func `released bytes leave the budget, and their segment is closed`() throws {
        let fixture = try Environment()
        try fixture.write([1, 2, 3, 4], at: Self.edge - 2)
        #expect(fixture.budget.usedByteCount == 4)
        fixture.spool.release(0..<Self.edge)
        #expect(fixture.budget.usedByteCount == 2)
        #expect(try fixture.directory.openDescriptorCount() == 1)
        #expect(!fixture.spool.holds(Self.edge - 1..<Self.edge))
        #expect(try fixture.read(Self.edge..<Self.edge + 2) == [3, 4])
    }

    @Test func `bytes in use are not released`() throws {
        let fixture = try Environment()
        try fixture.write([1, 2, 3, 4], at: 0)
        let body = SpoolBody(1..<4, of: fixture.spool)
        fixture.spool.release(0..<10)
        #expect(fixture.budget.usedByteCount == 3)
        var bytes = [UInt8](repeating: 0, count: 8)
        let count = try bytes.withUnsafeMutableBytes { try body.read(into: $0, at: 1) }
        #expect(bytes.prefix(count) == [3, 4])
        withExtendedLifetime(body) {}
    }

    @Test func `the end of the last use releases the bytes`() throws {
        let fixture = try Environment()
        try fixture.write([1, 2, 3, 4], at: 0)
        let pin = fixture.spool.pin(0..<4)
        fixture.spool.release(0..<4)
        #expect(fixture.budget.usedByteCount == 4)
        fixture.spool.unpin(pin)
        #expect(fixture.budget.usedByteCount == 0)
        #expect(try fixture.directory.openDescriptorCount() == 0)
    }

    @Test func `bytes that are written twice count once`() throws {
        let fixture = try Environment()
        try fixture.write([1, 2, 3, 4], at: 0)
        try fixture.write([5, 6, 7], at: 2)
        #expect(fixture.budget.usedByteCount == 5)
        #expect(try fixture.read(0..<5) == [1, 2, 5, 6, 7])
    }

    @Test func `a closed spool holds nothing and accepts nothing`() throws {
        let fixture = try Environment()
        try fixture.write([1, 2, 3, 4], at: 0)
        fixture.spool.close()
        #expect(fixture.budget.usedByteCount == 0)
        #expect(try fixture.directory.openDescriptorCount() == 0)
        #expect(throws: ByteStoreError.self) { try fixture.write([1], at: 0) }
    }

    @Test func `bytes that are written again after their release can be read`() throws {
        let fixture = try Environment()
        try fixture.write([1, 2, 3, 4], at: 0)
        let pin = fixture.spool.pin(0..<4)
        fixture.spool.release(0..<4)
        try fixture.write([5, 6], at: 1)
        fixture.spool.unpin(pin)
        #expect(try fixture.read(1..<3) == [5, 6])
        #expect(fixture.budget.usedByteCount == 2)
        try fixture.write([7], at: 0)
        #expect(try fixture.read(0..<3) == [7, 5, 6])
    }

    @Test func `a digest of the spool covers the requested range`() throws {
        let fixture = try Environment()
        let upload = StagedUpload(byteCount: 600_000)
        try fixture.write(upload.content, at: Self.edge - 1000)
        #expect(
            try fixture.spool.digest(of: Self.edge - 1000..<Self.edge + 599_000) == upload.digest)
    }
}
