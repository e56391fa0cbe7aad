internal import KedgeFiles

/// A body without bytes.
struct EmptyBody: ByteBody {
    var announcedByteCount: Int64? { 0 }

    func makeReader() async throws -> any ByteReader { Reader() }

    private final class Reader: ByteReader {
        func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool { false }
    }
}
