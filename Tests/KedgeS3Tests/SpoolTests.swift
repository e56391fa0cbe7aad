import KedgeCurl
import KedgeEngine
import KedgeFiles
import KedgeS3
import KedgeTesting
import Testing

struct SpoolTests {
    private struct Place {
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
        let place = try Place()
        try place.write([1, 2, 3, 4], at: Self.edge - 2)
        #expect(try place.read(Self.edge - 1..<Self.edge + 2) == [2, 3, 4])
        #expect(place.spool.holds(Self.edge - 2..<Self.edge + 2))
        #expect(!place.spool.holds(Self.edge - 3..<Self.edge + 2))
        #expect(try POSIXFileSystem().list(place.directory.path) == [])
        #expect(try place.directory.openDescriptorCount() == 2)
    }

    @Test func `released bytes leave the budget, and their segment is closed`() throws {
        let place = try Place()
        try place.write([1, 2, 3, 4], at: Self.edge - 2)
        #expect(place.budget.usedByteCount == 4)
        place.spool.forget(0..<Self.edge)
        #expect(place.budget.usedByteCount == 2)
        #expect(try place.directory.openDescriptorCount() == 1)
        #expect(!place.spool.holds(Self.edge - 1..<Self.edge))
        #expect(try place.read(Self.edge..<Self.edge + 2) == [3, 4])
    }

    @Test func `bytes in use are not released`() throws {
        let place = try Place()
        try place.write([1, 2, 3, 4], at: 0)
        let body = SpoolBody(1..<4, of: place.spool)
        place.spool.forget(0..<10)
        #expect(place.budget.usedByteCount == 3)
        var bytes = [UInt8](repeating: 0, count: 8)
        let count = try bytes.withUnsafeMutableBytes { try body.read(into: $0, at: 1) }
        #expect(bytes.prefix(count) == [3, 4])
        withExtendedLifetime(body) {}
    }

    @Test func `the end of the last use releases the bytes`() throws {
        let place = try Place()
        try place.write([1, 2, 3, 4], at: 0)
        let pin = place.spool.pin(0..<4)
        place.spool.forget(0..<4)
        #expect(place.budget.usedByteCount == 4)
        place.spool.unpin(pin)
        #expect(place.budget.usedByteCount == 0)
        #expect(try place.directory.openDescriptorCount() == 0)
    }

    @Test func `bytes that are written twice count once`() throws {
        let place = try Place()
        try place.write([1, 2, 3, 4], at: 0)
        try place.write([5, 6, 7], at: 2)
        #expect(place.budget.usedByteCount == 5)
        #expect(try place.read(0..<5) == [1, 2, 5, 6, 7])
    }

    @Test func `a closed spool holds nothing and accepts nothing`() throws {
        let place = try Place()
        try place.write([1, 2, 3, 4], at: 0)
        place.spool.close()
        #expect(place.budget.usedByteCount == 0)
        #expect(try place.directory.openDescriptorCount() == 0)
        #expect(throws: ByteStoreError.self) { try place.write([1], at: 0) }
    }

    @Test func `bytes that are written again after their release can be read`() throws {
        let place = try Place()
        try place.write([1, 2, 3, 4], at: 0)
        let pin = place.spool.pin(0..<4)
        place.spool.forget(0..<4)
        try place.write([5, 6], at: 1)
        place.spool.unpin(pin)
        #expect(try place.read(1..<3) == [5, 6])
        #expect(place.budget.usedByteCount == 2)
        try place.write([7], at: 0)
        #expect(try place.read(0..<3) == [7, 5, 6])
    }

    @Test func `a digest of the spool covers the requested range`() throws {
        let place = try Place()
        let upload = StagedUpload(byteCount: 600_000)
        try place.write(upload.content, at: Self.edge - 1000)
        #expect(
            try place.spool.digest(of: Self.edge - 1000..<Self.edge + 599_000) == upload.digest)
    }
}
