internal import KedgeIdentity
internal import KedgeLocks
internal import Logging

/// Log metadata that a handler collects about its request.
final class RequestLogMetadata: Sendable {
    private let values = Mutex<[String: String]>([:])
    private let bodyByteCount = Mutex<Int64>(0)

    /// Counts bytes read from the request's body.
    func addBody(_ byteCount: Int) { bodyByteCount.withLock { $0 += Int64(byteCount) } }

    func set(_ key: String, _ value: some CustomStringConvertible) {
        values.withLock { $0[key] = value.description }
    }

    /// Adds the principal of the request, under its own name and not yet that of another owner.
    func set(_ principal: Principal) {
        set("principal", principal.kind.rawValue)
        set("owner", principal.owner)
        if let id = principal.tokenID { set("token.id", id) }
        if let link = principal.link { set("link.id", link.id.text) }
    }

    /// Number of bytes read from the request's body.
    var receivedByteCount: Int64 { bodyByteCount.withLock { $0 } }

    var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = values.withLock { $0.mapValues { .string($0) } }
        let count = bodyByteCount.withLock { $0 }
        if count > 0 { metadata["body.bytes"] = "\(count)" }
        return metadata
    }
}
