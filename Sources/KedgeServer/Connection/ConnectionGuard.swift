internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel
internal import NIOCore
internal import NIOHTTPTypes

/// The body of a request came slower than the server waits for.
struct SlowBodyError: Error {}

/// What connections have in common while there are many, and how one of them takes part.
struct ConnectionLoad: Sendable {
    var table: ConnectionTable
    var proxies: TrustedProxies
    /// That of the connection's current request.
    var progress: BodyProgress
    /// Waiting over which it is judged whether a reader is slow.
    var readerWindow: TimeAmount
}

/// Watches one connection for what Hummingbird leaves open: bodies that trickle, and bodies that go
/// on after they have been answered.
///
/// Lives on its event loop. Only the time in which the server was waiting for bytes counts against the
/// client; while the disk is behind nothing is read, and that is not the client's fault.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Waiting time over which the rate is judged.
    private static let window = TimeAmount.seconds(10)
    /// After an early answer the rest of the body is read and thrown away as long as it comes:
    /// closing at once would reset the connection, and the client would miss the answer. So long
    /// without a byte, or so long in all, and it is closed.
    private static let lingerSilence = TimeAmount.seconds(2)
    private static let lingerTime = TimeAmount.seconds(60)

    private static let readerCheckInterval = TimeAmount.milliseconds(500)

    private let minBytesPerSecond: Int
    /// Most bytes that are thrown away after an early answer: a whole chunk of the largest size.
    private let lingerByteCount: Int
    /// A reader that takes nothing for this long is cut.
    private let readerTimeout: TimeAmount
    private let drain: DrainState
    private let load: ConnectionLoad
    private var connectionID: ReaderShares.ConnectionID?
    /// Who uses the connection, as far as shares go.
    private var client = ClientAddress.unknown
    private var pace: ReaderPace
    /// True when the pace was told to the table.
    private var isReaderSlow = false
    private var isRequestOpen = false
    /// Requests may be pipelined: the one whose body is open need not be the one being answered.
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
            load.progress.begin(isHeldBack: head.headerFields[.expect] != nil)
            isRequestOpen = true
            startedCount += 1
            discardedByteCount = 0
            resetRate()
            scheduleCheck(context)
        case .body(let buffer):
            byteCount += buffer.readableBytes
            load.progress.came(buffer.readableBytes)
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
            // A server that stops closes each connection after its answer.
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

    /// What the peer does not read stays in the channel; when it stays for too long, nobody reads.
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

    /// Bytes that wait in the channel; they get fewer also while the channel is not writable again. None for
    /// a channel that cannot tell, such as a closed one: then time alone decides.
    private func unsentByteCount(_ context: ChannelHandlerContext) -> Int {
        (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    /// No answer is being read any more.
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

    /// - Parameter taken: What the client's system had taken when it was looked at last.
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
        // As much as is missing from a whole window, for the server may have waited for less.
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
