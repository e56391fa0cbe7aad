internal import KedgeClient
internal import KedgeModel

/// Reads the pages of a list of the server, up to limits: a hostile server could go on for ever.
enum ServerPages {
    /// More than any list that one command can use.
    private static let maxEntryCount = 5_000_000
    private static let maxEmptyPageCount = 3

    /// Requests page after page until there is none, or the caller needs no more.
    ///
    /// - Parameters:
    ///   - request: Returns the entries of a page and the cursor of the next one.
    ///   - take: Takes the entries; returns whether to go on.
    /// - Throws: `PROTOCOL_VIOLATION` for a list that repeats a cursor or has no end.
    static func forEach<Entry>(
        _ request: (_ cursor: String?) async throws -> (entries: [Entry], next: String?),
        _ take: ([Entry]) -> Bool
    ) async throws {
        var cursor: String?
        var seen: Set<String> = []
        var (entryCount, emptyCount) = (0, 0)
        repeat {
            let page = try await request(cursor)
            guard take(page.entries) else { return }
            entryCount += page.entries.count
            emptyCount += page.entries.isEmpty ? 1 : 0
            cursor = page.next
            if let next = page.next {
                guard seen.insert(next).inserted, entryCount <= maxEntryCount,
                    emptyCount <= maxEmptyPageCount
                else {
                    throw TransferError(
                        .protocolViolation, operation: "list",
                        explanation: "The list of the server has no end.")
                }
            }
        } while cursor != nil
    }
}
