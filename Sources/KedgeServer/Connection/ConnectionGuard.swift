internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel
internal import NIOCore
internal import NIOHTTPTypes

/// The client sent a request body more slowly than the minimum rate.
struct SlowBodyError: Error {}

/// The state that all connections share, and the progress of one of them.
struct ConnectionLoad: Sendable {
    var table: ConnectionTable
    var proxies: TrustedProxies
    /// Progress of the connection's current request body.
    var progress: BodyProgress
    /// Waiting time over which a reader's rate is measured.
    var readerWindow: TimeAmount
}

/// Watches one connection for cases that Hummingbird does not handle: slow request bodies, slow
/// readers, and bodies that continue after the response.
///
/// Confined to its event loop. Only time in which the server waits for bytes counts against the
/// client. While the disk is behind, the server does not read, and that is not the client's fault.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Waiting time over which the rate of a body is measured.
    private static let window = TimeAmount.seconds(10)
    /// After an early response, the rest of the body is read and discarded. Closing at once would
    /// reset the connection, and the client would miss the response. The connection closes after
    /// `lingerSilence` without a byte, or after `lingerTime` in total.
    private static let lingerSilence = TimeAmount.seconds(2)
    private static let lingerTime = TimeAmount.seconds(60)

    private static let readerCheckInterval = TimeAmount.milliseconds(500)

    private let minBytesPerSecond: Int
    /// Maximum number of bytes discarded after an early response: one chunk of the largest size.
    private let lingerByteCount: Int
    /// Time without progress after which a reader is disconnected.
    private let readerTimeout: TimeAmount
    private let drain: DrainState
    private let load: ConnectionLoad
    private var connectionID: ReaderShares.ConnectionID?
    /// The client to whose share the connection counts.
    private var client = ClientAddress.unknown
    private var pace: ReaderPace
    /// Whether a rate was reported to the table.
    private var isReaderSlow = false
    private var isRequestOpen = false
    /// Requests may be pipelined: the body that still arrives need not belong to the request being
    /// answered.
    private var startedCount = 0
    private var answeredCount = 0
    private var isAnswered: Bool { answeredCount >= startedCount }
    private var closesAfterAnswer = false
    private var waitingSince: NIODeadline?
    private var waited = TimeAmount.zero
    private var byteCount = 0
    private var discardedByteCount = 0
    private var check: Scheduled<Void>?
    private var readerCheck: Scheduled<Void>?

    init(
        minBytesPerSecond: Int, lingerByteCount: Int, readerTimeout: TimeAmount, drain: DrainState,
        load: ConnectionLoad
    ) {
        self.drain = drain
        self.load = load
        pace = ReaderPace(window: load.readerWindow)
        self.minBytesPerSecond = minBytesPerSecond
        self.lingerByteCount = lingerByteCount
        self.readerTimeout = readerTimeout
    }

    func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { open(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        open(context)
        context.fireChannelActive()
    }

    private func open(_ context: ChannelHandlerContext) {
        guard connectionID == nil else { return }
        client = load.proxies.client(headers: [:], peer: context.remoteAddress)
        connectionID = load.table.opened(by: client)
    }

    private func use(_ head: HTTPRequest, _ context: ChannelHandlerContext) {
        let user = load.proxies.client(headers: head.headerFields, peer: context.remoteAddress)
        guard let connectionID, user != client else { return }
        client = user
        load.table.used(connectionID, by: user)
    }

    func read(context: ChannelHandlerContext) {
        if waitingSince == nil { waitingSince = .now() }
        load.progress.wait()
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        stopWaiting()
        switch unwrapInboundIn(data) {
        case .head(let head):
            use(head, context)
            load.progress.begin(awaitsContinue: head.headerFields[.expect] != nil)
            isRequestOpen = true
            startedCount += 1
            discardedByteCount = 0
            resetRate()
            scheduleCheck(context)
        case .body(let buffer):
            byteCount += buffer.readableBytes
            load.progress.countReceived(buffer.readableBytes)
            if isAnswered { discard(buffer.readableBytes, context) }
        case .end:
            isRequestOpen = false
            load.progress.end()
            check?.cancel()
            if isAnswered, closesAfterAnswer { context.close(promise: nil) }
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head) where head.status == .continue:
            load.progress.ask()
            resetRate()
            if waitingSince != nil { waitingSince = .now() }
            context.write(data, promise: promise)
        case .head(var head) where head.status.kind != .informational:
            if isRequestOpen, startedCount == answeredCount + 1 {
                closesAfterAnswer = true
            }
            // A server that is stopping closes each connection after its response.
            if closesAfterAnswer || drain.isDraining { head.headerFields[.connection] = "close" }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end:
            context.write(data, promise: promise)
            if !isRequestOpen || startedCount == answeredCount + 1 { check?.cancel() }
            answeredCount += 1
            if context.channel.isWritable { forgetReader(context) }
            if closesAfterAnswer { linger(context) }
        default:
            context.write(data, promise: promise)
        }
    }

    /// Starts or stops watching the reader. Bytes that the client does not read stay in the
    /// channel.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        readerCheck?.cancel()
        if !context.channel.isWritable {
            pace.wait(at: .now(), taken: AcknowledgedBytes.count(of: context.channel))
            watchReader(
                context, until: .now() + readerTimeout, unsent: unsentByteCount(context), taken: nil
            )
        } else if isAnswered {
            forgetReader(context)
        } else {
            pace.stopWaiting(at: .now())
        }
        context.fireChannelWritabilityChanged()
    }

    /// Number of bytes buffered in the channel. It can fall before the channel is writable again.
    ///
    /// Returns 0 for a channel that cannot report it, such as a closed one. Then only the timeout
    /// counts.
    private func unsentByteCount(_ context: ChannelHandlerContext) -> Int {
        (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    /// Resets the measured rate, because no response is being read.
    private func forgetReader(_ context: ChannelHandlerContext) {
        pace.reset()
        guard isReaderSlow, let connectionID else { return }
        isReaderSlow = false
        load.table.read(connectionID, bytesPerSecond: nil, over: context.channel)
    }

    private func judgeReader(_ context: ChannelHandlerContext, taken: UInt64?) {
        guard let rate = pace.judge(at: .now(), taken: taken), let connectionID else { return }
        isReaderSlow = true
        load.table.read(connectionID, bytesPerSecond: rate, over: context.channel)
    }

    /// - Parameter taken: Bytes that the client had acknowledged at the last check.
    private func watchReader(
        _ context: ChannelHandlerContext, until deadline: NIODeadline, unsent: Int, taken: UInt64?
    ) {
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        readerCheck = context.eventLoop.scheduleTask(in: Self.readerCheckInterval) {
            let (guardian, context) = bound.value
            guard .now() < deadline, !guardian.drain.isEnding else {
                context.close(promise: nil)
                return
            }
            let rest = guardian.unsentByteCount(context)
            let total = AcknowledgedBytes.count(of: context.channel)
            guardian.judgeReader(context, taken: total)
            let isTaking = rest < unsent || total.map { $0 > taken ?? $0 } ?? false
            guardian.watchReader(
                context, until: isTaking ? .now() + guardian.readerTimeout : deadline,
                unsent: min(rest, unsent), taken: total)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        check?.cancel()
        readerCheck?.cancel()
        load.progress.end()
        if let connectionID { load.table.closed(connectionID) }
        connectionID = nil
        context.fireChannelInactive()
    }

    private func linger(_ context: ChannelHandlerContext) {
        context.flush()
        guard isRequestOpen else {
            context.close(promise: nil)
            return
        }
        closeWhenSilent(context, seen: discardedByteCount, deadline: .now() + Self.lingerTime)
    }

    private func closeWhenSilent(
        _ context: ChannelHandlerContext, seen: Int, deadline: NIODeadline
    ) {
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.lingerSilence) {
            let (guardian, context) = bound.value
            let count = guardian.discardedByteCount
            guard count > seen, .now() < deadline else {
                context.close(promise: nil)
                return
            }
            guardian.closeWhenSilent(context, seen: count, deadline: deadline)
        }
    }

    private func discard(_ count: Int, _ context: ChannelHandlerContext) {
        discardedByteCount += count
        if discardedByteCount > lingerByteCount { context.close(promise: nil) }
    }

    private func stopWaiting() {
        if let since = waitingSince { waited = waited + (.now() - since) }
        waitingSince = nil
    }

    private func resetRate() {
        waited = .zero
        byteCount = 0
    }

    private func scheduleCheck(_ context: ChannelHandlerContext) {
        check?.cancel()
        guard minBytesPerSecond > 0 else { return }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        // Checks again when the window can be full. Not all elapsed time counts as waiting.
        let rest = max(.milliseconds(100), Self.window - waited)
        check = context.eventLoop.scheduleTask(in: rest) {
            let (guardian, context) = bound.value
            guardian.judge(context)
        }
    }

    private func judge(_ context: ChannelHandlerContext) {
        guard isRequestOpen, !isAnswered else { return }
        if let since = waitingSince {
            waited = waited + (.now() - since)
            waitingSince = .now()
        }
        if waited >= Self.window {
            let expected = Int(waited.nanoseconds / 1_000_000_000) * minBytesPerSecond
            if byteCount < expected {
                context.fireErrorCaught(SlowBodyError())
                return
            }
            resetRate()
        }
        scheduleCheck(context)
    }
}
