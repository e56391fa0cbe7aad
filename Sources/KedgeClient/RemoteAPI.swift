internal import Foundation
public import KedgeModel

/// Files and sessions on the server. Each call except ``examine()`` is one request.
///
/// Errors are ``TransferError`` with the server's code, or `OFFLINE`.
public struct RemoteAPI: Sendable {
    let api: ServerAPI
    /// Proxy of the configuration for the server; nil for that of the environment.
    var proxy: String?

    /// Returns one page of the caller's files: newest first, or with a prefix by path, and of
    /// several with the same path the newest first.
    ///
    /// - Parameters:
    ///   - prefix: Only files whose path is this one or below it; the empty text for all files with
    ///     a path. Nil for all files. Older servers ignore it: check the `path` of each file.
    ///   - after: `next` of the previous page; nil for the first.
    ///   - limit: Maximum number of files on the page; nil for the server's default.
    ///   - onlyDamaged: Only files whose copy is known to be damaged.
    public func listFiles(
        prefix: String? = nil, after: String? = nil, limit: Int? = nil, onlyDamaged: Bool = false
    ) async throws -> FileList {
        try await call {
            try await api.listFiles(
                prefix: prefix, after: after, limit: limit, onlyDamaged: onlyDamaged
            ).value
        }
    }

    /// Returns one page of the caller's unfinished upload sessions, newest first.
    ///
    /// - Parameters:
    ///   - after: `next` of the previous page; nil for the first.
    ///   - limit: Maximum number of sessions on the page; nil for the server's default.
    public func listSessions(
        after: String? = nil, limit: Int? = nil
    ) async throws -> SessionList {
        try await call { try await api.listSessions(after: after, limit: limit).value }
    }

    /// Returns a file's metadata.
    public func fileMeta(_ id: FileID) async throws -> FileMeta {
        try await call { try await api.fileMeta(id).value }
    }

    /// Deletes a file permanently.
    public func deleteFile(_ id: FileID) async throws {
        try await call { try await api.deleteFile(id) }
    }

    /// Returns the status of an upload session.
    public func sessionStatus(_ id: SessionID) async throws -> SessionStatus {
        try await call {
            try await api.sessionStatus(id, chunkCount: ChunkLayout.maxChunkCount).value
        }
    }

    /// Makes a link, which permits one upload, or the download of one file, without a token. The
    /// server stores nothing, so the link cannot be shown again.
    public func createLink(_ request: CreateLinkRequest) async throws -> CreateLinkResponse {
        try await call { try await api.createLink(request).value }
    }

    /// Revokes a link.
    ///
    /// - Parameters:
    ///   - id: The id in the answer of the creation.
    ///   - expiresAt: The end of the link; nil if it is unknown.
    public func revokeLink(_ id: String, expiresAt: Timestamp? = nil) async throws {
        try await call { try await api.revokeLink(id, expiresAt: expiresAt) }
    }

    /// Returns the owner for whom the token acts, with rights, limits and usage; nil if the server
    /// is of an earlier version, which does not report it.
    ///
    /// - Throws: `UNAUTHENTICATED` if the server requires a token, or refuses the one it got.
    public func owner() async throws -> AccountDescription? {
        do {
            return try await call { try await api.owner().value }
        } catch let error as TransferError where error.code == .routeNotFound {
            return nil
        }
    }

    /// Checks that the server is ready: its stores answer and its disk takes writes.
    public func checkReadiness() async throws {
        try await call { try await api.checkReadiness() }
    }

    /// Examines the connection to the server: the responder, the latency, and proxies on the way.
    ///
    /// - Throws: `NOT_KEDGE` for an answer that does not come from a Kedge server, for example the
    ///   page of a captive portal, or another code if an intermediary may have given it;
    ///   `ROUTE_NOT_FOUND` for a wrong path of a Kedge server, and its code for a refusal. A Kedge
    ///   server that is not ready is no error: see ``ServerReport/trouble``.
    public func examine() async throws -> ServerReport {
        let examination = ServerProbe(
            api: api, proxy: proxy, now: { .current },
            environment: ProcessInfo.processInfo.environment)
        return try await call { try await examination.report() }
    }

    /// Translates the failure of a request.
    func call<Result>(_ work: () async throws -> Result) async throws -> Result {
        do {
            return try await work()
        } catch let failure as RequestFailure {
            if failure.isCanceled { throw CancellationError() }
            // A single request has no retries: an unknown host name gets its own code.
            let ended = failure.atFirstContact(with: .new) ?? failure
            throw TransferError(
                ended.code, operation: failure.operation, explanation: failure.message,
                cause: failure)
        }
    }
}
