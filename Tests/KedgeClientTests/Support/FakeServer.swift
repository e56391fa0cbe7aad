import Foundation
import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting

/// A Kedge server in memory, and a network with planned faults.
///
/// It follows the native contract closely enough to check a client: chunks are verified by hash,
/// partials are kept, and acknowledged bytes that arrive again are counted.
final class FakeServer: HTTPTransport {
    struct Session {
        var name: String
        var size: Int64
        var chunkSize: Int64
        var metadata: [String: String] = [:]
        var chunks: [Int: [UInt8]] = [:]
        var partials: [Int: [UInt8]] = [:]
        var state = SessionState.open
        var file: FileID?
        /// The digest that the file must have; the file's own digest once it is completed.
        var declaredDigest: SHA256Digest?
        var layout: ChunkLayout { ChunkLayout(fileSize: size, chunkSize: chunkSize) }
    }

    struct StoredFile {
        var bytes: [UInt8]
        var name = "file"
        var etag: String
        var chunkSize: Int64
        var mtime: String?
    }

    /// Something served under `/plain/name`, by a server that is not Kedge.
    struct Plain {
        var bytes: [UInt8]
        var etag: String?
        /// `Last-Modified`, and the `Date` of every answer.
        var lastModified: String?
        var date: String?
        var servesRanges = true
        var digest: SHA256Digest?
        var announcesLength = true
        /// The URL to which requests are redirected.
        var redirect: String?
    }

    /// A request as the server received it.
    struct Seen: Sendable {
        let method: String
        let path: String
        let fields: HTTPFields
        var carriedByteCount = 0
        var url = ""
        /// The path without its query.
        var route: String { String(path.prefix { $0 != "?" }) }
    }

    struct State {
        var sessions: [SessionID: Session] = [:]
        var files: [FileID: StoredFile] = [:]
        var plain: [String: Plain] = [:]
        var idempotencyKeys: [String: SessionID] = [:]
        var seen: [Seen] = []
        var faults: [PlannedFault] = []
        /// Bytes of committed chunks or durable partials that were sent again.
        var repeatedByteCount = 0
        var chunkSize: Int64?
        var offersChunkDigests = true
        var offersSessionDigests = true
        var pieceByteCount = 10_000
        /// True when bodies may end before their chunk does, as the session's limits then say.
        var takesPartialBodies = false
        /// Number of times that a file which an empty session may be is offered; 0 for none.
        var storedFileOfferCount = 0
    }

    let state = Mutex(State())
    static let base = "http://kedge.test"

    func shutdown() async {}

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        if Task.isCancelled { throw TransportError(.canceled) }
        let path = String(
            request.url.drop { $0 != "/" }.dropFirst(2).drop { $0 != "/" })
        let seen = Seen(
            method: request.method.rawValue, path: path, fields: request.headerFields,
            url: request.url)
        let fault = state.withLock { state -> Fault? in
            state.seen.append(seen)
            return state.faults.take(for: seen)
        }
        if case .wait(let gate) = fault {
            await gate.waitOrCancellation()
            if Task.isCancelled { throw TransportError(.canceled) }
        }
        if case .offline = fault { throw TransportError(.offline) }
        if case .fail(let kind) = fault { throw TransportError(kind) }
        if case .unreachable(let cause) = fault {
            throw TransportError(
                .offline, connection: ConnectionFailure(cause, host: "kedge.test", port: 80))
        }
        if case .answer(let reply) = fault { return reply.response() }
        if let early = state.withLock({ $0.refuseEarly(seen) }) { return early.response() }
        var sendLimit = Int.max
        if case .dropBody(let count) = fault { sendLimit = count }
        if case .gather(let count, let reply) = fault {
            let sent = request.body.map { min($0.byteCount, Int64(count)) } ?? 0
            request.onBytesSent?(sent)
            if let reply { return reply.response() }
            throw TransportError(.dropped)
        }
        let body: [UInt8]
        do {
            body = try Self.read(request.body, upTo: sendLimit)
        } catch {
            throw TransportError(.bodyUnreadable, cause: error)
        }
        request.onBytesSent?(Int64(body.count))
        if case .corruptBody = fault {
            return handle(seen, Self.flipped(body)).response()
        }
        let isCut = Int64(body.count) < request.body?.byteCount ?? 0
        var reply = handle(seen, body, isCut: isCut)
        reply.pieceByteCount = state.withLock { $0.pieceByteCount }
        if isCut { throw TransportError(.dropped) }
        switch fault {
        case .loseResponse: throw TransportError(.dropped)
        case .rewrite(let change): change(&reply)
        default: break
        }
        return reply.response()
    }

    private static func flipped(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        if !bytes.isEmpty { bytes[bytes.count / 2] ^= 0x10 }
        return bytes
    }

    private static func read(_ body: TransportBody?, upTo limit: Int) throws -> [UInt8] {
        switch body {
        case nil: return []
        case .bytes(let bytes): return Array(bytes.prefix(limit))
        case .source(let source):
            var bytes: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 10_000)
            while bytes.count < min(limit, Int(source.byteCount)) {
                let count = try piece.withUnsafeMutableBytes {
                    try source.read(into: $0, at: Int64(bytes.count))
                }
                bytes.append(contentsOf: piece.prefix(count))
            }
            return Array(bytes.prefix(limit))
        }
    }

    private func handle(_ seen: Seen, _ body: [UInt8], isCut: Bool = false) -> Reply {
        let parts = seen.path.split(separator: "?")[0].split(separator: "/").map(String.init)
        return state.withLock { state in
            state.seen[state.seen.count - 1].carriedByteCount = body.count
            switch (seen.method, parts.first, parts.count) {
            case ("POST", "uploads", 2): return state.create(seen, body)
            case ("GET", "uploads", 3): return state.status(parts[2], seen)
            case ("DELETE", "uploads", 3):
                state.sessions[SessionID(wellFormed: parts[2])]?.state = .canceled
                return Reply(status: 204)
            case ("PUT", "uploads", 5):
                return state.put(parts[2], Int(parts[4]) ?? -1, seen, body, isCut: isCut)
            case ("POST", "uploads", 4): return state.finalize(parts[2], body)
            case (_, "plain", 2): return state.plain(parts[1], seen)
            case ("GET", "files", 2): return state.file(parts[1], seen)
            case ("GET", "files", 3): return state.about(parts[1], parts[2])
            default: return Reply(problem: .routeNotFound)
            }
        }
    }
}

/// A fault of the network or of the server.
enum Fault: Sendable {
    case offline
    case fail(TransportError.Kind)
    case unreachable(ConnectionCause)
    /// The connection ends after this many bytes of the request's body, which the server handles.
    case dropBody(after: Int)
    /// This many bytes of the body reach a buffering proxy, which passes none on. It answers, or
    /// the connection ends.
    case gather(upTo: Int, Reply?)
    /// The request is carried out, but its answer never arrives.
    case loseResponse
    case answer(Reply)
    /// The server sees the body with one bit flipped.
    case corruptBody
    case rewrite(@Sendable (inout Reply) -> Void)
    /// Holds the request until the gate opens.
    case wait(Gate)
}

struct PlannedFault: Sendable {
    let matches: @Sendable (FakeServer.Seen) -> Bool
    let fault: Fault
    var remainingCount: Int
}

extension [PlannedFault] {
    /// Takes the first fault that is planned for the request and counts one use of it.
    mutating func take(for seen: FakeServer.Seen) -> Fault? {
        guard let place = firstIndex(where: { $0.matches(seen) }) else { return nil }
        self[place].remainingCount -= 1
        defer { removeAll { $0.remainingCount <= 0 } }
        return self[place].fault
    }
}

/// An answer that a fault can still change.
struct Reply: Sendable {
    var status: Int
    var fields: HTTPFields = [:]
    var body: [UInt8] = []
    /// The connection ends after this many bytes of the body.
    var cutsAfter: Int?
    /// The number of bytes of the body that arrive at a time.
    var pieceByteCount = 10_000

    init(status: Int, fields: HTTPFields = [:], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    init(status: Int = 200, json: some Encodable) {
        self.init(
            status: status, fields: [.contentType: "application/json"],
            // A value without JSON has no body, which the client refuses.
            body: (try? JSONEncoder().encode(json)).map(Array.init) ?? [])
    }

    init(problem code: ErrorCode, _ change: (inout ProblemDocument) -> Void = { _ in }) {
        var problem = ProblemDocument(code: code, requestId: "request-7")
        change(&problem)
        self.init(status: code.facts.httpStatus ?? 500, json: problem)
    }

    func response() -> TransportResponse {
        let pieces = Mutex(
            (body.prefix(cutsAfter ?? body.count)).chunked(by: pieceByteCount) as [[UInt8]])
        let isCut = cutsAfter != nil
        let holder = Holder(pieces: pieces.withLock { $0 })
        return TransportResponse(
            status: status, headerFields: fields,
            body: TransportResponseBody { () async throws(TransportError) -> [UInt8]? in
                if Task.isCancelled { throw TransportError(.canceled) }
                if let piece = holder.next() { return piece }
                if isCut { throw TransportError(.dropped) }
                return nil
            })
    }

    private final class Holder: Sendable {
        private let pieces: Mutex<[[UInt8]]>
        init(pieces: [[UInt8]]) { self.pieces = Mutex(pieces.reversed()) }
        func next() -> [UInt8]? { pieces.withLock { $0.popLast() } }
    }
}

extension Collection where Element == UInt8, Index == Int {
    fileprivate func chunked(by size: Int) -> [[UInt8]] {
        stride(from: startIndex, to: endIndex, by: size).map {
            Array(self[$0..<Swift.min($0 + size, endIndex)])
        }
    }
}
