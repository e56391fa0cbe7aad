import HTTPTypes
import Hummingbird
import KedgeClient
import KedgeLocks
import NIOCore

/// A request's body as it reaches the server: a few bytes at a time, with delays, and perhaps
/// incomplete.
struct ArrivingBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    /// The connection ended before the body did.
    struct BrokenOff: Error {}

    let bytes: [UInt8]
    /// Number of bytes that arrive before the link breaks; nil when it holds.
    let limit: Int?
    let exchange: Exchange
    let world: World

    func makeAsyncIterator() -> Iterator { Iterator(body: self) }

    struct Iterator: AsyncIteratorProtocol {
        let body: ArrivingBody
        var offset = 0

        mutating func next() async throws -> ByteBuffer? {
            await body.world.awaitLatency()
            if body.exchange.isCut { throw BrokenOff() }
            let end = Swift.min(body.bytes.count, body.limit ?? Int.max)
            guard offset < end else {
                guard body.limit == nil else {
                    body.exchange.cut()
                    throw BrokenOff()
                }
                return nil
            }
            let piece = body.bytes[offset..<Swift.min(end, offset + body.world.draw(1...1500))]
            offset += piece.count
            return ByteBuffer(bytes: piece)
        }
    }
}

/// Sends an answer's body into the network.
struct AnswerWriter: ResponseBodyWriter {
    let exchange: Exchange
    let world: World

    mutating func write(_ buffer: ByteBuffer) async throws {
        var rest = buffer.readableBytesView[...]
        while !rest.isEmpty {
            await world.awaitLatency()
            let piece = rest.prefix(world.draw(1...1500))
            try exchange.append(Array(piece))
            rest = rest.dropFirst(piece.count)
        }
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { exchange.complete() }
}

extension TransportBody {
    /// Reads the complete body.
    func read() throws(TransportError) -> [UInt8] {
        switch self {
        case .bytes(let bytes): return bytes
        case .source(let source):
            var bytes = [UInt8](repeating: 0, count: Int(source.byteCount))
            var offset = 0
            while offset < bytes.count {
                do {
                    offset += try bytes.withUnsafeMutableBytes { memory in
                        try source.read(
                            into: UnsafeMutableRawBufferPointer(rebasing: memory[offset...]),
                            at: Int64(offset))
                    }
                } catch {
                    throw TransportError(.bodyUnreadable, cause: error)
                }
            }
            return bytes
        }
    }
}
