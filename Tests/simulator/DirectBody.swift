import KedgeEngine
import KedgeFiles
import KedgeModel

/// A body that reaches the engine without the routes of a front end, a few bytes at a time and
/// with delays.
struct DirectBody: ByteBody {
    let bytes: [UInt8]
    /// Number of bytes that arrive before the link breaks; nil when it holds.
    let limit: Int?
    let world: World

    var announcedByteCount: Int64? { Int64(bytes.count) }

    func makeReader() async throws -> any ByteReader { Reader(self) }

    private final class Reader: ByteReader {
        private let body: DirectBody
        private var offset = 0

        init(_ body: DirectBody) { self.body = body }

        func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool {
            let end = min(body.limit ?? Int.max, body.bytes.count)
            var wanted = min(limit, buffer.freeCount)
            while wanted > 0 {
                await body.world.awaitLatency()
                try Task.checkCancellation()
                guard offset < end else {
                    guard body.limit == nil else { throw EngineError(.lengthMismatch) }
                    return false
                }
                let piece = body.bytes[offset..<min(end, offset + min(wanted, 700))]
                let taken = piece.withUnsafeBytes { buffer.append($0) }
                offset += taken
                wanted -= taken
            }
            return true
        }
    }
}
