package import KedgeFiles

/// A stream of incoming bytes, for example a request's body.
package protocol ByteBody: Sendable {
    /// Number of bytes announced; nil for an open-ended body.
    var announcedByteCount: Int64? { get }

    /// True while the client waits for `100 Continue` before it sends the body. A refusal then
    /// costs it nothing.
    var awaitsContinue: Bool { get }

    /// The origin of the body, and its progress.
    var origin: BodyOrigin { get }

    /// Returns the body's reader. Called once, after all checks that need no bytes. This is the
    /// moment to send `100 Continue`.
    func makeReader() async throws -> any ByteReader
}

extension ByteBody {
    /// False unless the front end provides a value.
    package var awaitsContinue: Bool { false }

    /// Unknown unless the front end provides a value.
    package var origin: BodyOrigin { .unknown }
}

/// Reads a ``ByteBody`` once from its start. One caller at a time.
package protocol ByteReader: AnyObject {
    /// Appends up to `limit` bytes to the buffer. Waits until that many have arrived or the body
    /// ends.
    ///
    /// - Returns: False when the body has ended after the bytes that are in the buffer.
    /// - Throws: An error when the body breaks off or the task is cancelled. Bytes that arrived
    ///   before are in the buffer and count.
    func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool
}
