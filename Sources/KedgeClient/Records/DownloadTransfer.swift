public import KedgeModel

/// A durable download (R37–R45).
package struct DownloadTransfer: Sendable, Equatable {
    package var status: TransferStatus
    /// What is downloaded.
    package let reference: RemoteReference
    /// Where the finished file goes; absolute.
    package let destinationPath: String
    /// Where its bytes gather until they are verified: beside the destination (R46, R112). Each new
    /// file has a name of its own.
    package let tempPath: String
    /// True when an existing destination may be replaced.
    package let overwrites: Bool
    /// Size of the remote file, nil until asked or when the server does not say (R39).
    package var expectedSize: Int64?
    /// SHA-256 that the file must have, when anybody said (R39, R88).
    package var expectedHash: SHA256Digest?
    /// True when the hash came from the caller, who outranks the server.
    package let isHashPinned: Bool
    /// Names the version being downloaded (R44).
    package var validator: RangeValidator?
    package var chunkSize: Int64
    /// Chunks whose bytes are durable in the temporary file (R43).
    package var downloadedChunks: ChunkSet
    /// Durable bytes of chunks that are not whole yet.
    package var partialByteCount: Int64 = 0
    /// Inode of the temporary file once made: tells it from a stranger's, also after promotion.
    package var tempInode: UInt64?
    /// SHA-256 of the whole file, once all bytes were there and it was computed.
    package var fileHash: SHA256Digest?
    /// How often the file changed on the server during this transfer (R103).
    package var remoteChangeCount: Int
    /// True when the user lets it go on where nothing proves that the file is the same.
    package var resumesUnverified = false
    /// True when the reference is a URL without its user, password, query and fragment: they are kept
    /// only for as long as the download can go on.
    package var isURLRedacted = false
    /// True when a file that was found at the destination may have failed to sync: a later sync that
    /// succeeds says nothing of it (fsync(2)).
    package var isDestinationInDoubt = false

    /// Chunks of the file; nil while its size is unknown.
    package var layout: ChunkLayout? {
        expectedSize.map { ChunkLayout(fileSize: $0, chunkSize: chunkSize) }
    }

    /// A new record, in state `queued`.
    package init(
        status: TransferStatus, reference: RemoteReference, destinationPath: String,
        tempPath: String, overwrites: Bool, pinnedHash: SHA256Digest?, chunkSize: Int64
    ) {
        self.status = status
        self.reference = reference
        self.destinationPath = destinationPath
        self.tempPath = tempPath
        self.overwrites = overwrites
        self.expectedHash = pinnedHash
        self.isHashPinned = pinnedHash != nil
        self.chunkSize = chunkSize
        self.downloadedChunks = ChunkSet()
        self.remoteChangeCount = 0
    }
}

/// What to download: a file of the Kedge server, or anything that HTTP serves.
public enum RemoteReference: Sendable, Hashable {
    /// A file of the configured server.
    case file(FileID)
    /// An absolute `http` or `https` URL.
    case url(String)

    /// True for what need not be a Kedge server's.
    var isURL: Bool { if case .url = self { true } else { false } }
}
