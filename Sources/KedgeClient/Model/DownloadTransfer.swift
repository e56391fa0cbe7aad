public import KedgeModel

/// A durable download.
package struct DownloadTransfer: Sendable, Equatable {
    package var status: TransferStatus
    /// The file to download.
    package let reference: RemoteReference
    /// Absolute path of the finished file.
    package let destinationPath: String
    /// Path of the temporary file, beside the destination, until the bytes are verified. Each new
    /// file has a name of its own.
    package let tempPath: String
    /// Whether an existing destination may be replaced.
    package let overwrites: Bool
    /// Size of the remote file; nil before the first request or if the server does not report it.
    package var expectedSize: Int64?
    /// SHA-256 that the file must have, if known.
    package var expectedHash: SHA256Digest?
    /// Whether the hash came from the caller, which outranks the server.
    package let isHashPinned: Bool
    /// Names the version being downloaded.
    package var validator: RangeValidator?
    package var chunkSize: Int64
    /// Chunks whose bytes are durable in the temporary file.
    package var downloadedChunks: ChunkSet
    /// Number of durable bytes in unfinished chunks.
    package var partialByteCount: Int64 = 0
    /// Inode of the temporary file once it exists: identifies the file, also after promotion.
    package var tempInode: UInt64?
    /// SHA-256 of the whole file, computed once all bytes have arrived.
    package var fileHash: SHA256Digest?
    /// Number of times the file changed on the server during this transfer.
    package var remoteChangeCount: Int
    /// Whether the user lets it resume where nothing proves that the file is unchanged.
    package var resumesUnverified = false
    /// Whether the file gets the modification time that its server reports.
    package var keepsModificationTime = false
    /// Whether the reference is a URL without its user, password, query and fragment. They are kept
    /// only while the download can resume.
    package var isURLRedacted = false
    /// Whether a file found at the destination may have failed to sync: a later sync that succeeds
    /// proves nothing about it (fsync(2)).
    package var isDestinationInDoubt = false

    /// Chunks of the file; nil while its size is unknown.
    package var layout: ChunkLayout? {
        expectedSize.map { ChunkLayout(fileSize: $0, chunkSize: chunkSize) }
    }

    /// Creates a record in state `queued`.
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

/// The source of a download: a file of the Kedge server, or any HTTP resource.
public enum RemoteReference: Sendable, Hashable {
    /// A file of the configured server.
    case file(FileID)
    /// An absolute `http` or `https` URL.
    case url(String)

    /// Whether the source may be on any HTTP server.
    var isURL: Bool { urlText != nil }

    /// The id of a file of the configured server.
    var fileID: FileID? { if case .file(let id) = self { id } else { nil } }

    /// The URL of a source on any HTTP server.
    var urlText: String? { if case .url(let text) = self { text } else { nil } }

    /// The link and the file that it permits to read; nil for other sources.
    var linkedFile: (link: ServiceLink, id: FileID)? {
        guard let link = urlText.flatMap({ ServiceLink($0) }), case .file(let id) = link.target
        else { return nil }
        return (link, id)
    }

    /// Whether both are links to one file.
    func isRenewed(by other: RemoteReference) -> Bool {
        guard let (link, id) = linkedFile, let (otherLink, otherID) = other.linkedFile else {
            return false
        }
        return link.serverURL == otherLink.serverURL && id == otherID
    }
}
