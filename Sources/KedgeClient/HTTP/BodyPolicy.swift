package import KedgeTransport

/// The rule for reading the body of an answer into memory. The policies differ in how much of the
/// body its reader can do without.
package enum BodyPolicy: Sendable {
    /// For answers whose content is needed, as in the native protocol. A success that breaks off or
    /// exceeds the limit is a failure. Another answer may lack its explanation: its status counts.
    case whole(maxByteCount: Int)
    /// For protocols whose answers are in the head, which is authoritative. A body that breaks off
    /// or is huge does not matter: its first bytes are read, as far as they arrive.
    case beginning
    /// For an answer of any sender and status. A larger body than any expected one counts as empty;
    /// one that breaks off is a failure.
    case wholeOrNothing(maxByteCount: Int)

    /// Longest explanation of a failure that is read, and longest ``beginning``.
    private static let maxExplanationByteCount = 64 << 10

    /// Reads the body of an answer.
    ///
    /// - Throws: Only if the reader needs the body, or if the task is canceled.
    package func read(_ head: ServerReply) async throws(TransportError) -> [UInt8] {
        switch self {
        case .whole(let maxByteCount):
            guard head.isSuccess else { return try await Self.explanation(of: head) }
            return try await head.body.collect(upTo: maxByteCount)
        case .beginning:
            return try await Self.firstBytes(of: head)
        case .wholeOrNothing(let maxByteCount):
            return try await Self.content(of: head, upTo: maxByteCount)
        }
    }

    /// Reads the explanation of a failure; empty if it is huge or breaks off.
    ///
    /// - Throws: Only if the task is canceled.
    static func explanation(of head: ServerReply) async throws(TransportError) -> [UInt8] {
        do {
            return try await head.body.collect(upTo: maxExplanationByteCount)
        } catch {
            guard error.kind == .canceled else { return [] }
            throw error
        }
    }

    private static func firstBytes(of head: ServerReply) async throws(TransportError) -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            while bytes.count < maxExplanationByteCount, let piece = try await head.body.next() {
                bytes += piece.prefix(maxExplanationByteCount - bytes.count)
            }
        } catch {
            if error.kind == .canceled { throw error }
        }
        return bytes
    }

    private static func content(
        of head: ServerReply, upTo maxByteCount: Int
    ) async throws(TransportError) -> [UInt8] {
        do {
            return try await head.body.collect(upTo: maxByteCount)
        } catch {
            guard error.kind == .other else { throw error }
            return []
        }
    }
}
