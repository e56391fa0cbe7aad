import Foundation
import HTTPTypes
import KedgeLocks
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOResumableUpload

/// The resumable uploads of swift-nio-extras, served on 127.0.0.1 behind a link that can be bad.
///
/// Everything runs on one event loop: what the link lets through has reached the upload before any
/// later request is looked at, so bytes can be counted exactly.
final class ForeignResumableServer: Sendable {
    /// What becomes of connections.
    enum Link: Sendable {
        case whole
        /// Each is closed once it carried so many bytes to the server; what follows them is lost.
        case cut(after: Int)
        /// Each goes silent once it carried so many bytes to the server, which is not told when the
        /// client is gone.
        case silent(after: Int)
    }

    struct State: Sendable {
        var link = Link.whole
        /// Bytes that the link carried to the server, heads of requests among them.
        var carriedByteCount = 0
        /// Connections that were cut or went silent.
        var brokenCount = 0
        /// Files that were begun.
        var fileCount = 0
        /// Paths of files that are whole.
        var finished: [String] = []
        fileprivate var uploads: HTTPResumableUploadContext?
    }

    private let directory: String
    private let state = Mutex(State())

    private init(directory: String) { self.directory = directory }

    /// Serves while the closure runs.
    ///
    /// - Parameters:
    ///   - directory: Where files go; they stay.
    ///   - body: Gets the server and the URL at which uploads are begun.
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
        // Nobody knows the port before.
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
                // Without it the upload would stay unanswered, and the test's time limit show that.
                try? upload.pipeline.syncOperations.addHandler(FileSink(server: self))
            })
    }

    /// Path for the next file.
    fileprivate func begin() -> String {
        state.withLock { state in
            state.fileCount += 1
            return "\(directory)/received-\(state.fileCount)"
        }
    }

    fileprivate func finish(_ path: String) { state.withLock { $0.finished.append(path) } }

    /// Lets bytes through.
    ///
    /// - Returns: How many of them, and whether the connection breaks then.
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
    /// True when what waits above must not learn that the connection ended.
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

    /// The upload is over; when it was given up, its file goes.
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
