import Foundation
import HTTPTypes
import KedgeLocks
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOResumableUpload

/// The resumable uploads of swift-nio-extras, served on 127.0.0.1 behind an unreliable link.
///
/// Everything runs on one event loop: bytes that pass the link reach the upload before any later
/// request is handled, so bytes can be counted exactly.
final class ForeignResumableServer: Sendable {
    /// The fate of connections.
    enum Link: Sendable {
        case whole
        /// Closes each connection after this many bytes to the server; later bytes are lost.
        case cut(after: Int)
        /// Silences each connection after this many bytes to the server. The server does not learn
        /// when the client disconnects.
        case silent(after: Int)
    }

    struct State: Sendable {
        var link = Link.whole
        /// Bytes that the link carried to the server, including the heads of requests.
        var carriedByteCount = 0
        /// Connections that were cut or went silent.
        var brokenCount = 0
        /// The number of files that were begun.
        var fileCount = 0
        /// Paths of files that are complete.
        var finished: [String] = []
        fileprivate var uploads: HTTPResumableUploadContext?
    }

    private let directory: String
    private let state = Mutex(State())

    private init(directory: String) { self.directory = directory }

    /// Serves while the closure runs.
    ///
    /// - Parameters:
    ///   - directory: Directory for the files, which stay.
    ///   - body: Gets the server and the URL at which uploads are created.
    static func serve(
        in directory: String, _ body: (ForeignResumableServer, String) async throws -> Void
    ) async throws {
        let server = ForeignResumableServer(directory: directory)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let listener = try await ServerBootstrap(group: loop)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try server.configure(channel) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let origin = "http://127.0.0.1:\(listener.localAddress?.port ?? 0)"
        // The port is not known before.
        server.state.withLock { $0.uploads = HTTPResumableUploadContext(origin: origin) }
        do {
            try await body(server, origin + "/files")
        } catch {
            try await listener.close()
            throw error
        }
        try await listener.close()
    }

    func set(_ link: Link) { state.withLock { $0.link = link } }

    var now: State { state.withLock { $0 } }

    private func configure(_ channel: any Channel) throws {
        guard let uploads = state.withLock({ $0.uploads }) else { return }
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(BadLink(server: self))
        try pipeline.configureHTTPServerPipeline()
        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
        try pipeline.addHandler(
            HTTPResumableUploadHandler(context: uploads) { upload in
                // Without the handler the upload stays unanswered, and the test's time limit shows
                // that.
                try? upload.pipeline.syncOperations.addHandler(FileSink(server: self))
            })
    }

    /// Returns the path for the next file.
    fileprivate func begin() -> String {
        state.withLock { state in
            state.fileCount += 1
            return "\(directory)/received-\(state.fileCount)"
        }
    }

    fileprivate func finish(_ path: String) { state.withLock { $0.finished.append(path) } }

    /// Lets bytes through the link.
    ///
    /// - Returns: The number of bytes that pass, and the link if the connection breaks then.
    fileprivate func carry(_ count: Int, after carried: Int) -> (count: Int, link: Link?) {
        state.withLock { state in
            let limit =
                switch state.link {
                case .whole: Int.max
                case .cut(let limit), .silent(let limit): limit
                }
            let passing = max(0, min(count, limit - carried))
            state.carriedByteCount += passing
            guard carried + passing >= limit else { return (passing, nil) }
            state.brokenCount += 1
            return (passing, state.link)
        }
    }
}

/// The link of one connection, below everything that understands bytes.
private final class BadLink: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let server: ForeignResumableServer
    private var carriedByteCount = 0
    private var isBroken = false
    /// True when the handlers above must not learn that the connection ended.
    private var isSilent = false

    init(server: ForeignResumableServer) { self.server = server }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        guard !isBroken else { return }
        let (count, link) = server.carry(buffer.readableBytes, after: carriedByteCount)
        carriedByteCount += count
        isBroken = link != nil
        if let passing = buffer.readSlice(length: count), count > 0 {
            context.fireChannelRead(wrapInboundOut(passing))
        }
        if case .cut = link { context.close(promise: nil) }
        if case .silent = link { isSilent = true }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if !isSilent { context.fireChannelInactive() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if !isSilent { context.fireErrorCaught(error) }
    }
}

/// Writes an upload into a file, as if it came in one request.
private final class FileSink: ChannelInboundHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundOut = HTTPResponsePart

    private let server: ForeignResumableServer
    private var path: String?
    private var file: FileHandle?

    init(server: ForeignResumableServer) { self.server = server }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do {
            switch unwrapInboundIn(data) {
            case .head(let request):
                guard request.method == .post else { return respond(.notImplemented, context) }
                let path = server.begin()
                try Data().write(to: URL(fileURLWithPath: path))
                file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                self.path = path
            case .body(let bytes):
                try file?.write(contentsOf: Data(bytes.readableBytesView))
            case .end:
                guard let path else { return }
                try file?.close()
                server.finish(path)
                self.path = nil
                respond(.created, context)
            }
        } catch {
            respond(.internalServerError, context)
        }
    }

    /// Removes the file of an upload that ended unfinished.
    func channelInactive(context: ChannelHandlerContext) {
        // A file left behind fails the test that expects none.
        if let path { try? FileManager.default.removeItem(atPath: path) }
        context.fireChannelInactive()
    }

    private func respond(_ status: HTTPResponse.Status, _ context: ChannelHandlerContext) {
        let response = HTTPResponse(status: status, headerFields: [.contentLength: "0"])
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}
