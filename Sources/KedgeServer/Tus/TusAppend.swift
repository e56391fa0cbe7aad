internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// The bytes that a request brings, and what it says of them. Read before any state is touched.
struct TusAppend: Sendable {
    let body: RequestByteBody
    private let checksum: TusChecksum.Source
    private let connection: RawConnection?

    /// - Throws: `BAD_REQUEST`, ``EncodedBodyError``.
    init(_ request: Request, _ context: KedgeRequestContext) throws {
        body = try RequestByteBody(request, context: context)
        checksum = try TusChecksum.source(of: request)
        connection = context.connection
    }

    /// True when the request has no body at all.
    var isEmpty: Bool { body.announcedByteCount == 0 }

    /// The engine's write.
    ///
    /// - Parameters:
    ///   - length: What the request says the size of the upload is.
    ///   - known: The size, said now or before.
    func put(at offset: Int64, declaring length: Int64?, known: Int64?) -> AppendPut {
        var put = AppendPut(offset: offset)
        put.declaredSize = length
        if let known, let count = body.announcedByteCount, known >= count {
            put.completes = offset == known - count
        }
        switch checksum {
        case .none:
            break
        case .field(let checksum):
            put.checksum = checksum
        case .trailer:
            put.lateChecksum = { [connection] in
                try TusChecksum.parse(trailer: try await connection?.trailers())
            }
        }
        return put
    }
}
