package import KedgeFiles

/// A stream of bytes on its way in, for example a request's body.
package protocol ByteBody: Sendable {
    /// Number of bytes announced; nil when the body ends where it ends.
    var announcedByteCount: Int64? { get }

    /// True while the client waits to be asked for the body (`Expect: 100-continue`), so that a
    /// refusal costs it nothing.
    var isHeldBack: Bool { get }

    /// Where it comes from, and how it comes along.
    var origin: BodyOrigin { get }

    /// Called once, when every check that needs no bytes has passed: the moment to answer
    /// `Expect: 100-continue`.
    func makeReader() async throws -> any ByteReader
}

extension ByteBody {
    /// A body comes without being asked for unless its door says otherwise.
    package var isHeldBack: Bool { false }

    /// Nothing is known of it unless its door says so.
    package var origin: BodyOrigin { .unknown }
}

/// Reads a ``ByteBody`` once from its start. One caller at a time.
package protocol ByteReader: AnyObject {
    /// Appends up to `limit` bytes to the buffer, waiting until that many have come or the body ends.
    ///
    /// - Returns: False when the body has ended, after the bytes that are in the buffer.
    /// - Throws: When the body breaks off or the task is cancelled. Bytes that came before are in the
    ///   buffer and count.
    func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool
}
