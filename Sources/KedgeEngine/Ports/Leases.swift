package import KedgeModel

/// One node's lease on some work.
package struct WorkLease: Hashable, Sendable {
    /// Name of the node; a restarted node has a new one.
    package var holder: String
    package var now: Timestamp
    package var until: Timestamp

    package init(holder: String, now: Timestamp, until: Timestamp) {
        self.holder = holder
        self.now = now
        self.until = until
    }
}

/// A fencing token: names one body while it is being written.
///
/// The writer may lose its lease without knowing. So the row of a partial records which writer
/// saved it, and at which revision of the session. A writer may shorten, replace or remove the row
/// only in two cases: it saved the row itself, or the row is not newer than the revision that it
/// knew when it got the chunk.
package struct FencingToken: Sendable {
    /// Index of the chunk that is written.
    package var index: Int
    /// Random, so that no two writers share it.
    package var text: String
    /// The session's revision that the writer knew when it got the chunk. A partial that another
    /// writer saved later shows that this writer was replaced.
    package var knownRevision: Int64

    package init(index: Int, text: String, knownRevision: Int64 = 0) {
        self.index = index
        self.text = text
        self.knownRevision = knownRevision
    }
}

/// Two tokens are equal whatever revision they know.
extension FencingToken: Hashable {
    package static func == (one: FencingToken, other: FencingToken) -> Bool {
        one.index == other.index && one.text == other.text
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(index)
        hasher.combine(text)
    }
}
