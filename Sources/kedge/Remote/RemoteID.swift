internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// Ids of the server's files and sessions as people type them: whole, a unique beginning, or `last`
/// for the newest.
enum RemoteID {
    static let help: ArgumentHelp =
        "Id of the file: whole, a unique beginning, or `last` for the newest."
    /// Beginnings shorter than this would often be unique by chance.
    private static let minPrefixCount = 4

    /// Returns the file that the text names.
    ///
    /// - Throws: `USAGE` if several files have such an id; `FILE_NOT_FOUND` if none has.
    static func file(_ text: String, _ client: TransferClient) async throws -> FileID {
        if let id = FileID(text) { return id }
        return try await resolve(text, .fileNotFound) { cursor in
            let page = try await client.remote.listFiles(
                after: cursor, limit: text == "last" ? 1 : 1000)
            return (page.files.map(\.remoteFileId), page.next)
        }
    }

    /// Returns the unfinished session that the text names.
    static func session(_ text: String, _ client: TransferClient) async throws -> SessionID {
        if let id = SessionID(text) { return id }
        return try await resolve(text, .sessionNotFound) { cursor in
            let page = try await client.remote.listSessions(
                after: cursor, limit: text == "last" ? 1 : 100)
            return (page.sessions.map(\.sessionId), page.next)
        }
    }

    /// Returns the transfer that the text names.
    static func transfer(_ text: String, _ client: TransferClient) async throws -> TransferID {
        if let id = TransferID(text) { return id }
        // Oldest first.
        let transfers = try await client.transfers()
        return try await resolve(text, .transferNotFound) { _ in
            (transfers.reversed().map(\.id), nil)
        }
    }

    /// - Parameter page: Returns ids, newest first, and the cursor of the next page.
    private static func resolve<ID: RandomIdentifier>(
        _ text: String, _ missing: ErrorCode,
        _ page: (String?) async throws -> (entries: [ID], next: String?)
    ) async throws -> ID {
        let isPrefix =
            text.utf8.count >= minPrefixCount && text.utf8.count < 32
            && text.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) }
        guard text == "last" || isPrefix else {
            throw refusal(
                .usage,
                "\(text) is not an id: 32 hexadecimal digits, at least \(minPrefixCount) of them"
                    + " from the beginning, or last.")
        }
        var found: [ID] = []
        try await ServerPages.forEach(page) { ids in
            found += text == "last" ? Array(ids.prefix(1)) : ids.filter { $0.text.hasPrefix(text) }
            return text != "last" && found.count < 2
        }
        switch found.count {
        case 1: return found[0]
        case 0:
            throw refusal(
                missing, text == "last" ? "There is none." : "No id begins with \(text).")
        default:
            let ids = found.prefix(2).map(\.text).joined(separator: ", ")
            throw refusal(.usage, "Several ids begin with \(text): \(ids), and perhaps more.")
        }
    }

    private static func refusal(_ code: ErrorCode, _ explanation: String) -> TransferError {
        TransferError(code, operation: "look up", explanation: explanation)
    }
}
