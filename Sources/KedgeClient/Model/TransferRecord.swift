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
