/// What there is of an unfinished chunk in the temporary file of a download, with the state of the
/// chunk's hash, so that an interrupted chunk goes on where it stopped.
package struct DownloadPartial: Sendable, Equatable {
    /// Which chunk.
    package let index: Int
    /// Bytes that were written, from the chunk's first one: there after a kill, in doubt after a power
    /// cut.
    package let noted: SavedHash
    /// Bytes that are on stable storage; nil when none were synced.
    package let synced: SavedHash?
}
