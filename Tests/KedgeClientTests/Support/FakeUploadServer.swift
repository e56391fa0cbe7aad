import Foundation
import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import KedgeTesting

/// A third-party server in memory. It speaks tus or IETF resumable uploads and knows nothing of
/// Kedge. A setting decides whether it keeps the bytes of a broken request.
final class FakeUploadServer: HTTPTransport {
    struct Upload: Sendable {
        var bytes: [UInt8] = []
        var size: Int64?
        var isComplete = false
        /// The fields of the request that created the upload.
        var creation: HTTPFields
    }

    struct State {
        var uploadProtocol = UploadProtocol.tus
        var uploads: [String: Upload] = [:]
        var uploadCount = 0
        var seen: [FakeServer.Seen] = []
        var faults: [PlannedFault] = []
        /// Bytes that had been acknowledged and were sent again.
        var repeatedByteCount = 0
        var keepsBrokenBodies = true
        /// The SHA-256 that the server reports of a complete upload, as a few servers do.
        var digest: SHA256Digest?
        var forgetsFinished = false
        /// The address of an upload, from its number.
        var location: @Sendable (String) -> String = { "\(FakeUploadServer.creationURL)\($0)" }
        // tus
        var extensions: String? = "creation,checksum,expiration,termination"
        var algorithms: String? = "md5,sha1,sha256"
        var maxSize: Int64?
        // IETF
        var versions: Set<Int?> = [nil, 3, 4, 5, 6, 7, 8, 9]
        var limit: String?
        var checksContentDigest = true
        /// True for a server without resumable uploads, which makes a file of each POST.
        var isPlain = false
    }

    static let creationURL = "http://up.test/files/"
    let state = Mutex(State())

    init(_ uploadProtocol: UploadProtocol) { state.withLock { $0.uploadProtocol = uploadProtocol } }

    func shutdown() async {}

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        if Task.isCancelled { throw TransportError(.canceled) }
        let path = String(request.url.drop { $0 != "/" }.dropFirst(2).drop { $0 != "/" })
        let seen = FakeServer.Seen(
            method: request.method.rawValue, path: path, fields: request.headerFields,
            url: request.url)
        let fault = state.withLock { state -> Fault? in
            state.seen.append(seen)
            return state.faults.take(for: seen)
        }
        var sendLimit = Int.max
        switch fault {
        case .wait(let gate):
            await gate.waitOrCancellation()
            if Task.isCancelled { throw TransportError(.canceled) }
        case .offline: throw TransportError(.offline)
        case .fail(let kind): throw TransportError(kind)
        case .answer(let reply): return reply.response()
        case .dropBody(let count): sendLimit = count
        default: break
        }
        var body = try read(request.body, upTo: sendLimit)
        request.onBytesSent?(Int64(body.count))
        if case .corruptBody = fault, !body.isEmpty { body[body.count / 2] ^= 1 }
        let isCut = Int64(body.count) < request.body?.byteCount ?? 0
        var reply = state.withLock { $0.answer(seen, body, isCut: isCut) }
        if isCut { throw TransportError(.dropped) }
        switch fault {
        case .loseResponse: throw TransportError(.dropped)
        case .rewrite(let change): change(&reply)
        default: break
        }
        if seen.method == "HEAD" { reply.body = [] }
        return reply.response()
    }

    private func read(
        _ body: TransportBody?, upTo limit: Int
    ) throws(TransportError) -> [UInt8] {
        switch body {
        case nil: return []
        case .bytes(let bytes): return Array(bytes.prefix(limit))
        case .source(let source):
            let count = Int(min(Int64(limit), source.byteCount))
            var bytes = [UInt8](repeating: 0, count: count)
            var start = 0
            do {
                while start < count {
                    start += try bytes.withUnsafeMutableBytes { buffer in
                        try source.read(
                            into: UnsafeMutableRawBufferPointer(rebasing: buffer[start...]),
                            at: Int64(start))
                    }
                }
            } catch {
                throw TransportError(.bodyUnreadable, cause: error)
            }
            return bytes
        }
    }
}

extension FakeUploadServer.State {
    mutating func answer(_ seen: FakeServer.Seen, _ body: [UInt8], isCut: Bool) -> Reply {
        seenBody(body.count)
        if isPlain { return Reply(status: seen.method == "POST" ? 201 : 405) }
        switch uploadProtocol {
        case .tus: return answerTus(seen, body, isCut: isCut)
        case .resumableUpload: return answerIETF(seen, body, isCut: isCut)
        case .native: return Reply(status: 500)
        }
    }

    private mutating func seenBody(_ count: Int) {
        seen[seen.count - 1].carriedByteCount = count
    }

    mutating func begin(_ seen: FakeServer.Seen, size: Int64?) -> String {
        uploadCount += 1
        uploads["\(uploadCount)"] = FakeUploadServer.Upload(size: size, creation: seen.fields)
        return location("\(uploadCount)")
    }

    /// Returns the number of the requested upload; nil when it does not exist.
    func number(_ seen: FakeServer.Seen) -> String? {
        let last = seen.path.split(separator: "/").last.map(String.init)
        return last.flatMap { uploads[$0] == nil ? nil : $0 }
    }

    /// Appends the bytes of a request, also of one that broke off.
    mutating func append(_ body: [UInt8], to number: String) {
        uploads[number]?.bytes += body
    }

    /// Returns the field with the digest of a complete upload.
    func reportedFile(_ upload: FakeUploadServer.Upload) -> HTTPFields {
        guard upload.isComplete, let digest else { return [:] }
        return [.reprDigest: DigestHeader.rfc9530(digest)]
    }

    mutating func finish(_ number: String) {
        uploads[number]?.isComplete = true
    }
}
