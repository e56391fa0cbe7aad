internal import Foundation
public import KedgeModel

/// The server's files and sessions, for looking and tidying; each call is one request.
///
/// Errors are ``TransferError`` with the server's code, or `OFFLINE`.
public struct RemoteAPI: Sendable {
    let api: ServerAPI

    /// One page of the caller's files, newest first.
    ///
    /// - Parameters:
    ///   - after: `next` of the page before; nil for the first.
    ///   - onlyDamaged: Only files of which the server knows that its copy is damaged.
    public func listFiles(
        after: String? = nil, limit: Int? = nil, onlyDamaged: Bool = false
    ) async throws -> FileList {
        try await call {
            try await api.listFiles(after: after, limit: limit, onlyDamaged: onlyDamaged).value
        }
    }

    /// What the server knows about a file.
    public func fileMeta(_ id: FileID) async throws -> FileMeta {
        try await call { try await api.fileMeta(id).value }
    }

    /// Deletes a file for good.
    public func deleteFile(_ id: FileID) async throws {
        try await call { try await api.deleteFile(id) }
    }

    /// Where an upload session stands on the server.
    public func sessionStatus(_ id: SessionID) async throws -> SessionStatus {
        try await call {
            try await api.sessionStatus(id, chunkCount: ChunkLayout.maxChunkCount).value
        }
    }

    /// Succeeds when the server can do its work: its stores answer and its disk takes writes.
    public func checkReadiness() async throws {
        try await call { try await api.checkReadiness() }
    }

    /// Asks what answers at the server's address, how fast, and through what.
    ///
    /// - Throws: `PROTOCOL_VIOLATION` when it is no Kedge, for example the page of a captive portal. One
    ///   that cannot do its work now is no error: ``ServerReport/trouble`` says why.
    public func examine() async throws -> ServerReport {
        let examination = ServerExamination(
            api: api, now: { .current }, environment: ProcessInfo.processInfo.environment)
        return try await call { try await examination.report() }
    }

    private func call<Result>(_ work: () async throws -> Result) async throws -> Result {
        do {
            return try await work()
        } catch let failure as RequestFailure {
            if failure.isCanceled { throw CancellationError() }
            // One request is all there is: a name that does not exist has its own code.
            let ended = failure.atFirstContact(with: .new) ?? failure
            throw TransferError(
                ended.code, operation: failure.operation, explanation: failure.message,
                cause: failure)
        }
    }
}
