internal import HTTPTypes
internal import KedgeFiles
internal import KedgeLocks
internal import NIOCore
internal import NIOHTTPTypes

/// Takes the bodies of requests from a connection straight into the buffers of those who read them.
///
/// Bodies do not go through Hummingbird's queue of parts: there every piece of some kilobytes wakes a
/// task, which costs more than moving its bytes. Here a reader hands over a buffer and is woken once,
/// when it is full. While nobody wants bytes no more is read from the socket than one read brings.
///
/// Lives on its event loop. Comes after the handlers that watch time: they see every piece.
final class BodyIntake: ChannelDuplexHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Somebody who waits for bytes.
    fileprivate struct Demand {
        let buffer: IOBuffer
        var byteCount: Int
        let continuation: CheckedContinuation<FillResult, Never>
    }

    /// True: the buffer has all that was wanted. False: the body has ended.
    typealias FillResult = Result<Bool, any Error>

    /// The body of one request, as far as it has come and was not read.
    fileprivate struct IncomingBody {
        // Most requests have no body.
        var pieces = CircularBuffer<ByteBuffer>(initialCapacity: 0)
        var end: FillResult?
        var trailers: HTTPFields?
        var demand: Demand?
    }

    /// Requests may be pipelined: those that have begun and are not answered, in order. The first is the
    /// one that somebody may be reading, the last the one that still comes.
    private var bodies = CircularBuffer<IncomingBody>()
    private var heldByteCount = 0
    /// A read was asked for and not passed on.
    private var owesRead = false
    private var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    /// Also told when the connection is gone; Hummingbird's handler before this one keeps that to itself.
    func handlerRemoved(context: ChannelHandlerContext) {
        end(with: .failure(ChannelError.ioOnClosedChannel))
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            bodies.append(IncomingBody())
            context.fireChannelRead(data)
        case .body(let piece):
            // Without a request that waits for it this is the rest of one that has been answered.
            guard !bodies.isEmpty else { return }
            bodies[bodies.index(before: bodies.endIndex)].pieces.append(piece)
            heldByteCount += piece.readableBytes
            serve()
        case .end(let trailers):
            if !bodies.isEmpty {
                let last = bodies.index(before: bodies.endIndex)
                bodies[last].end = .success(false)
                bodies[last].trailers = trailers
                serve()
            }
            context.fireChannelRead(data)
        }
    }

    func read(context: ChannelHandlerContext) {
        owesRead = true
        readIfWanted()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        context.write(data, promise: promise)
        guard case .end = unwrapOutboundIn(data), var answered = bodies.popFirst() else { return }
        heldByteCount -= answered.pieces.reduce(0) { $0 + $1.readableBytes }
        answered.finish(with: .failure(CancellationError()))
        readIfWanted()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(with: .failure(error))
        context.fireErrorCaught(error)
    }

    /// Appends up to `limit` bytes of the body that is being read, and tells when they have come.
    fileprivate func fill(
        _ buffer: IOBuffer, limit: Int, _ continuation: CheckedContinuation<FillResult, Never>
    ) {
        guard !bodies.isEmpty else {
            continuation.resume(returning: .failure(ChannelError.ioOnClosedChannel))
            return
        }
        bodies[bodies.startIndex].demand = Demand(
            buffer: buffer, byteCount: min(limit, buffer.freeCount), continuation: continuation)
        serve()
        readIfWanted()
    }

    /// Ends the wait for bytes, if somebody waits; what has come stays.
    fileprivate func cancelFill() {
        guard !bodies.isEmpty else { return }
        bodies[bodies.startIndex].finish(with: .failure(CancellationError()))
    }

    /// The fields after the body that is being read; nil before its end has come.
    fileprivate var trailers: HTTPFields? { bodies.first?.trailers }

    private func serve() {
        heldByteCount -= bodies[bodies.startIndex].serve()
    }

    private func readIfWanted() {
        guard owesRead, heldByteCount == 0 || bodies.first?.demand != nil else { return }
        owesRead = false
        context?.read()
    }

    private func end(with result: FillResult) {
        for index in bodies.indices where bodies[index].end == nil { bodies[index].end = result }
        if !bodies.isEmpty { serve() }
    }
}

extension BodyIntake.IncomingBody {
    /// Moves bytes to the one who waits, and wakes it when that is all.
    ///
    /// - Returns: How many bytes were moved.
    fileprivate mutating func serve() -> Int {
        guard var current = demand else { return 0 }
        var moved = 0
        while moved < current.byteCount, !pieces.isEmpty {
            let first = pieces.startIndex
            let taken = pieces[first].readWithUnsafeReadableBytes { bytes in
                let taken = current.buffer.append(bytes, limit: current.byteCount - moved)
                return (taken, taken)
            }
            if pieces[first].readableBytes == 0 { pieces.removeFirst() }
            moved += taken
        }
        current.byteCount -= moved
        demand = current
        if current.byteCount == 0 {
            finish(with: .success(true))
        } else if let end {
            finish(with: end)
        }
        return moved
    }

    fileprivate mutating func finish(with result: BodyIntake.FillResult) {
        demand?.continuation.resume(returning: result)
        demand = nil
    }
}

/// Where the body of the current request comes from; can be passed between threads.
struct BodySource: Sendable {
    private let intake: NIOLoopBound<BodyIntake>
    private let eventLoop: any EventLoop

    /// - Parameter eventLoop: That of the intake's connection; the caller is on it.
    init(_ intake: BodyIntake, eventLoop: any EventLoop) {
        self.intake = NIOLoopBound(intake, eventLoop: eventLoop)
        self.eventLoop = eventLoop
    }

    /// Appends up to `limit` bytes to the buffer, waiting until that many have come or the body ends.
    ///
    /// - Returns: False when the body has ended.
    /// - Throws: What broke the body off, `CancellationError`.
    func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool {
        guard limit > 0, buffer.freeCount > 0 else { return true }
        let isCancelled = Mutex(false)
        let result: BodyIntake.FillResult = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                eventLoop.execute {
                    // Whoever was cancelled before this has nobody to wake it.
                    if isCancelled.withLock({ $0 }) {
                        continuation.resume(returning: .failure(CancellationError()))
                    } else {
                        intake.value.fill(buffer, limit: limit, continuation)
                    }
                }
            }
        } onCancel: {
            isCancelled.withLock { $0 = true }
            eventLoop.execute { intake.value.cancelFill() }
        }
        return try result.get()
    }
    /// The fields after the body, once it has been read to its end; empty when there are none.
    ///
    /// - Throws: When the connection is gone.
    func trailers() async throws -> HTTPFields {
        try await eventLoop.submit { intake.value.trailers ?? HTTPFields() }.get()
    }
}
