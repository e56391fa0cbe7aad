internal import Hummingbird
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel
internal import Logging
internal import NIOCore

/// Streams ranges of an open file, and text between them, into a response, one buffer at a time.
struct FileBody: Sendable {
    enum Piece: Sendable {
        case file(ByteRange)
        case text(String)

        var byteCount: Int64 {
            switch self {
            case .file(let range): range.byteCount
            case .text(let text): Int64(text.utf8.count)
            }
        }
    }

    /// Bytes read at a time. A slow reader holds two such buffers in memory, so they are small.
    private static let readByteCount: Int64 = 256 << 10
    /// Bytes sent at a time by the kernel: more as long as the reader takes them quickly.
    /// Meanwhile, the next ones are prefetched from the disk.
    private static let sendByteCounts: (least: Int64, most: Int64) = (1 << 20, 8 << 20)
    /// Time of one send above which the next one is smaller.
    private static let quickSend = Duration.milliseconds(250)

    private let file: OpenedFile
    private let engine: TransferEngine
    private let eventLoop: any EventLoop
    private let sender: FileSender?
    private let logger: Logger

    /// - Parameters:
    ///   - eventLoop: The event loop of the connection.
    ///   - sender: The connection's file sender; nil when there is none.
    ///   - logger: Carries the request's id.
    init(
        _ file: OpenedFile, engine: TransferEngine, eventLoop: any EventLoop,
        sender: FileSender?, logger: Logger
    ) {
        self.file = file
        self.engine = engine
        self.eventLoop = eventLoop
        self.sender = sender
        self.logger = logger
    }

    /// The response body. Closes the file after it has been written or writing has failed.
    func responseBody(_ pieces: [Piece]) -> ResponseBody {
        let byteCount = pieces.reduce(0) { $0 + $1.byteCount }
        return ResponseBody(contentLength: Int(byteCount)) {
            [file, engine, eventLoop, sender, logger] writer in
            do {
                for piece in pieces {
                    switch piece {
                    case .text(let text):
                        try await writer.write(ByteBuffer(string: text))
                    case .file(let range):
                        if let sender,
                            let descriptor = try await engine.duplicateDescriptor(of: file)
                        {
                            try await Self.send(
                                range, of: file, descriptor, engine, through: sender)
                        } else {
                            try await Self.write(
                                range, of: file, engine, to: &writer, on: eventLoop)
                        }
                    }
                }
                try await writer.finish(nil)
            } catch {
                // Too late for another status: the response is cut, and only the log can state the
                // reason. Usually the client has disconnected; an engine error is the exception.
                logger.log(
                    level: error is EngineError ? .error : .debug, "download aborted",
                    metadata: [
                        "file.id": "\(file.record.id)", "error": "\(String(reflecting: error))",
                    ])
                await file.reader.close()
                throw error
            }
            await file.reader.close()
        }
    }

    /// Sends the bytes with sendfile(2), then closes the descriptor.
    @concurrent
    private static func send(
        _ range: ByteRange, of file: OpenedFile, _ descriptor: Int32, _ engine: TransferEngine,
        through sender: FileSender
    ) async throws {
        let handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor)
        var underWay: EventLoopFuture<Void>?
        var outcome = Result<Void, any Error>.success(())
        do {
            var (start, byteCount) = (range.start, sendByteCounts.least)
            var began = ContinuousClock.now
            while start < range.end {
                let next = ByteRange(start: start, end: min(range.end, start + byteCount))
                try await engine.prefetch(file, at: next.start, byteCount: next.byteCount)
                try await underWay?.get()
                let isQuick = ContinuousClock.now - began < quickSend
                byteCount =
                    isQuick
                    ? min(byteCount * 2, sendByteCounts.most)
                    : max(byteCount / 2, sendByteCounts.least)
                began = .now
                underWay = sender.send(next, of: handle)
                engine.countDownload(of: next.byteCount)
                start = next.end
            }
        } catch {
            outcome = .failure(error)
        }
        // The kernel may still be sending. The descriptor can close only after that.
        do {
            try await underWay?.get()
        } catch {
            outcome = .failure(error)
        }
        try handle.close()
        try outcome.get()
    }

    @concurrent
    private static func write(
        _ range: ByteRange, of file: OpenedFile, _ engine: TransferEngine,
        to writer: inout any ResponseBodyWriter, on eventLoop: any EventLoop
    ) async throws {
        var offset = range.start
        while offset < range.end {
            let limit = min(range.end - offset, readByteCount)
            let bytes = try await engine.read(file, at: offset, upTo: limit) { bytes in
                ByteBuffer(bytes: bytes)
            }
            let byteCount = Int64(bytes.readableBytes)
            offset += byteCount
            try await writer.write(bytes)
            engine.countDownload(of: byteCount)
            // Waits for the event loop, which reports that the connection is full. On a busy
            // machine the report may be late, and many buffers would pile up in memory.
            try await eventLoop.submit {}.get()
        }
    }
}
