internal import HTTPTypes
internal import Hummingbird
package import KedgeModel

/// Decides which requests the audit log records: refused credentials and missing rights, deletions,
/// changes of tokens, owners, keys and links, changes by a principal that acts for another owner,
/// and the first read through each link.
package struct AuditTrail: Sendable {
    /// Number of links whose first read is remembered. A link that was forgotten meanwhile gets
    /// another line.
    private static let linkLimit = 65_536
    /// Paths that are longer are cut: any client can send them.
    private static let maxObjectLength = 256
    /// First parts of the paths at which the service itself is administered.
    private static let administration: Set<Substring> = [
        "admin", "keys", "links", "owners", "tokens",
    ]

    private let log: AuditLog
    private let now: @Sendable () -> Timestamp
    private let readLinks = RecentLinks(limit: AuditTrail.linkLimit)

    /// - Parameter now: The clock of the lines.
    package init(_ log: AuditLog, now: @escaping @Sendable () -> Timestamp) {
        self.log = log
        self.now = now
    }

    /// Writes the line of an answered request, if it needs one.
    ///
    /// - Parameters:
    ///   - error: The error that the request ended with; nil for none.
    ///   - code: The code of the failure itself.
    func record(
        _ request: Request, _ status: HTTPResponse.Status, error: (any Error)?, code: ErrorCode?,
        _ context: KedgeRequestContext
    ) async {
        let route = context.route
        guard route.hasPrefix("/") else { return }
        let facts = context.logMetadata.metadata.mapValues { "\($0)" }
        if let error, Self.isRefusal(error, code) {
            await log.recordRefusal(entry(request, status, code, context, facts))
        } else if isRecorded(request.method, route, status, facts) {
            let entry = entry(request, status, code, context, facts)
            // Any client can cause failures.
            if status.code >= 400 {
                await log.recordRefusal(entry)
            } else {
                await log.record(entry)
            }
        }
    }

    private static func isRefusal(_ error: any Error, _ code: ErrorCode?) -> Bool {
        RequestError.refusesCredential(error) || code == .forbidden || code == .linkExpired
    }

    private func isRecorded(
        _ method: HTTPRequest.Method, _ route: String, _ status: HTTPResponse.Status,
        _ facts: [String: String]
    ) -> Bool {
        // Without a principal, the request was refused before it could change anything.
        guard facts["principal"] != nil else { return false }
        switch method {
        case .get:
            // A file has several addresses: its own, and that of its tus upload.
            guard facts["file.id"] != nil, status.code < 400, let link = facts["link.id"] else {
                return false
            }
            return readLinks.insert(link)
        case .head, .options: return false
        case .delete: return true
        default:
            if route.split(separator: "/").first.map({ Self.administration.contains($0) }) == true {
                return true
            }
            // The parts of an upload are too many. Its beginning and its end are recorded.
            return facts["acting.for"] != nil && method == .post
        }
    }

    private func entry(
        _ request: Request, _ status: HTTPResponse.Status, _ code: ErrorCode?,
        _ context: KedgeRequestContext, _ facts: [String: String]
    ) -> AuditEntry {
        var entry = AuditEntry(
            time: now(), requestId: context.requestID,
            action: "\(request.method.rawValue) \(context.route)",
            object: String(request.uri.path.prefix(Self.maxObjectLength)), status: status.code)
        entry.client = context.client?.description
        entry.principal = facts["principal"]
        entry.owner = facts["owner"]
        entry.actingFor = facts["acting.for"]
        entry.tokenId = facts["token.id"]
        entry.linkId = facts["link.id"]
        entry.sessionId = facts["session.id"]
        entry.fileId = facts["file.id"]
        entry.target = facts["object"]
        entry.change = facts["change"]
        entry.code = code?.rawValue
        return entry
    }
}
