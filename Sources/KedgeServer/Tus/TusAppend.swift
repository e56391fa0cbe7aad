internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// The body of an append, its checksum and its size. Read before any state is changed.
struct TusAppend: Sendable {
    let body: RequestByteBody
    private let checksum: TusChecksum.Source
    private let connection: RawConnection?

    /// - Throws: `BAD_REQUEST`, ``RequestError/encodedBody``.
    init(_ request: Request, _ context: KedgeRequestContext) throws {
        body = try RequestByteBody(request, context: context)
        checksum = try TusChecksum.source(of: request)
        connection = context.connection
    }

    var isEmpty: Bool { body.announcedByteCount == 0 }

    /// Returns the engine's form of the append.
    ///
    /// - Parameters:
    ///   - length: Size of the upload that this request declares.
    ///   - known: Size of the upload, declared now or before.
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
