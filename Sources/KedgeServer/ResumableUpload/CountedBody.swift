internal import KedgeEngine
internal import KedgeFiles
internal import KedgeLocks

/// A body that counts the bytes read from it. The count distinguishes a body that exceeds the
/// file's end from one that was interrupted.
struct CountedBody: ByteBody {
    private let body: RequestByteBody
    private let counter = Counter()

    init(_ body: RequestByteBody) { self.body = body }

    var announcedByteCount: Int64? { body.announcedByteCount }
    var awaitsContinue: Bool { body.awaitsContinue }
    var origin: BodyOrigin { body.origin }
    var readByteCount: Int64 { counter.value.withLock { $0 } }

    func makeReader() async throws -> any ByteReader {
        Reader(try await body.makeReader(), counter)
    }

    private final class Counter: Sendable {
        let value = Mutex<Int64>(0)
    }

    private final class Reader: ByteReader {
        private let reader: any ByteReader
        private let counter: Counter

        init(_ reader: any ByteReader, _ counter: Counter) {
            self.reader = reader
            self.counter = counter
        }

        func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool {
            let before = buffer.count
            defer { counter.value.withLock { $0 += Int64(buffer.count - before) } }
            return try await reader.fill(buffer, limit: limit)
        }
    }
}
