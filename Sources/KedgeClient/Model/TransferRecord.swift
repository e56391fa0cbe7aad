package import KedgeModel

/// A record of either direction.
package enum TransferRecord: Sendable, Equatable {
    case upload(UploadTransfer)
    case download(DownloadTransfer)

    /// The part that both directions share.
    package var status: TransferStatus {
        switch self {
        case .upload(let upload): upload.status
        case .download(let download): download.status
        }
    }

    /// The direction of the bytes.
    package var direction: TransferDirection {
        switch self {
        case .upload: .upload
        case .download: .download
        }
    }
}

extension TransferRecord {
    /// Whether the record says that bytes move. Only meaningful if no living owner was found.
    var isOrphaned: Bool { status.state == direction.runningState }

    /// Confirmed bytes: complete chunks of an upload, durable bytes of a download.
    var confirmedByteCount: Int64 {
        switch self {
        case .upload(let upload):
            // In other protocols the server acknowledges an offset, which may lie inside a chunk.
            upload.uploadProtocol == .native
                ? upload.layout.byteCount(of: upload.uploadedChunks)
                : upload.status.lastGoodByteOffset
        case .download(let download):
            (download.layout?.byteCount(of: download.downloadedChunks) ?? 0)
                + download.partialByteCount
        }
    }
}

/// The values of both directions under one name.
extension TransferRecord {
    /// The record of an upload; nil for a download.
    var uploadRecord: UploadTransfer? {
        if case .upload(let upload) = self { upload } else { nil }
    }

    /// The record of a download; nil for an upload.
    var downloadRecord: DownloadTransfer? {
        if case .download(let download) = self { download } else { nil }
    }

    /// Path of the uploaded file or of the download's destination.
    var localPath: String {
        switch self {
        case .upload(let upload): upload.path
        case .download(let download): download.destinationPath
        }
    }

    /// Name of the file, without its directory.
    var name: String {
        switch self {
        case .upload(let upload): upload.fileName
        case .download(let download): LocalPath.name(of: download.destinationPath)
        }
    }

    /// Size of the file; nil until a download knows it.
    var byteCount: Int64? {
        switch self {
        case .upload(let upload): upload.identity.byteCount
        case .download(let download): download.expectedSize
        }
    }

    var chunkSize: Int64 {
        switch self {
        case .upload(let upload): upload.chunkSize
        case .download(let download): download.chunkSize
        }
    }

    /// Number of chunks; nil until the size is known.
    var chunkCount: Int? {
        switch self {
        case .upload(let upload): upload.layout.chunkCount
        case .download(let download): download.layout?.chunkCount
        }
    }

    /// Chunks that the server confirmed, or that are durable here.
    var confirmedChunks: ChunkSet {
        switch self {
        case .upload(let upload): upload.uploadedChunks
        case .download(let download): download.downloadedChunks
        }
    }

    /// The upload session, or the one that the user named.
    var sessionID: SessionID? {
        uploadRecord.flatMap { $0.sessionID ?? $0.givenSessionID }
    }

    /// The file on the Kedge server, once known.
    var remoteFileID: FileID? {
        switch self {
        case .upload(let upload): upload.remoteFileID
        case .download(let download): download.reference.fileID
        }
    }

    /// SHA-256 of the whole file, once computed.
    var fileHash: SHA256Digest? {
        switch self {
        case .upload(let upload): upload.fileHash
        case .download(let download): download.fileHash
        }
    }

    /// Number of bytes that the hash of the whole file covers.
    var hashedByteCount: Int64 {
        switch self {
        case .upload(let upload): upload.savedHash?.offsetBytes ?? 0
        // Not saved for downloads: a later run reads the bytes again before they count.
        case .download(let download): download.fileHash == nil ? 0 : download.expectedSize ?? 0
        }
    }
}

extension ChunkLayout {
    /// Returns the number of bytes in these chunks.
    func byteCount(of chunks: ChunkSet) -> Int64 {
        guard let chunkCount, chunkCount > 0 else { return 0 }
        // Only the last chunk may be short, so a count of the chunks is enough.
        let full = Int64(chunks.count) * chunkSize
        guard chunks.contains(chunkCount - 1), let last = range(ofChunk: chunkCount - 1) else {
            return full
        }
        return full - chunkSize + last.byteCount
    }
}
