/// The bytes of an unfinished chunk in the temporary file of a download, with the state of the
/// chunk's hash. An interrupted chunk resumes from it.
package struct DownloadPartial: Sendable, Equatable {
    /// Index of the chunk.
    package let index: Int
    /// Bytes written from the chunk's start: present after a kill, in doubt after a power cut.
    package let noted: SavedHash
    /// Bytes on stable storage; nil when none were synced.
    package let synced: SavedHash?

    package init(
        index: Int,
        noted: SavedHash,
        synced: SavedHash?
    ) {
        self.index = index
        self.noted = noted
        self.synced = synced
    }
}
