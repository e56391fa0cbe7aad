internal import KedgeClient
internal import KedgeModel

/// The newest file of each path below a prefix on the server.
struct ServerFolder: Sendable {
    /// By the bytes of the path: strings compare equal when only their Unicode form differs.
    private let newest: [[UInt8]: FileMeta]
    /// Ordered by path.
    let files: [FileMeta]

    /// Requests the list, page by page.
    init(_ prefix: String, _ client: TransferClient, _ retrying: ServerRetry) async throws {
        var newest: [[UInt8]: FileMeta] = [:]
        var files: [FileMeta] = []
        try await ServerPages.forEach { cursor in
            let page = try await retrying {
                try await client.remote.listFiles(prefix: prefix, after: cursor, limit: 1000)
            }
            return (page.files, page.next)
        } _: { page in
            for file in page {
                // A server that does not know prefixes lists everything.
                guard let path = file.path, Self.isPath(path, below: prefix),
                    newest[Array(path.utf8)] == nil
                else { continue }
                newest[Array(path.utf8)] = file
                files.append(file)
            }
            return true
        }
        self.newest = newest
        self.files = files
    }

    subscript(path: String) -> FileMeta? { newest[Array(path.utf8)] }

    private static func isPath(_ path: String, below prefix: String) -> Bool {
        let prefix =
            prefix.utf8.last == UInt8(ascii: "/") ? prefix.utf8.dropLast() : prefix.utf8[...]
        return prefix.isEmpty || path.utf8.elementsEqual(prefix)
            || (path.utf8.starts(with: prefix)
                && path.utf8.dropFirst(prefix.count).first == UInt8(ascii: "/"))
    }
}

/// Repeats a request to a server that is unavailable, within the limits for transfers: without its
/// answer, files could be sent twice.
struct ServerRetry: Sendable {
    let waiting: WaitOptions
    let client: TransferClient
    /// Shows the reason of a wait.
    let say: @Sendable (TransferError) -> Void

    func callAsFunction<Result: Sendable>(
        _ request: @Sendable () async throws -> Result
    ) async throws -> Result {
        var (wait, failureCount) = (Duration.seconds(1), 0)
        let isKnown = try await client.isServerKnown
        let limit = waiting.limit(ofKnownServer: isKnown)
        let began = ContinuousClock.now
        let deadline = limit.map { began + $0 }
        while true {
            // A list may take long to arrive; only silence ends a request.
            let waited = began.duration(to: .now)
            let left = limit.map { $0 > .zero ? max($0 - waited, .milliseconds(1)) : .zero }
            do {
                return try await client.waitingForAnswer(atMost: left, request)
            } catch let error as TransferError where error.isRetryable {
                failureCount += 1
                // Of an address that has never been a Kedge, this is no captive portal.
                guard isKnown || error.code != .notKedge else { throw error }
                let isOver = deadline.map { ContinuousClock.now + wait > $0 } ?? false
                guard !isOver, failureCount <= waiting.retries ?? .max else { throw error }
                say(error)
                try await Task.sleep(for: wait)
                wait = min(wait * 2, .seconds(30))
            }
        }
    }
}
