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
        let wait: BodyWait
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
    fileprivate func fill(_ buffer: IOBuffer, limit: Int, _ wait: BodyWait) {
        guard !bodies.isEmpty else {
            wait.end(with: .failure(ChannelError.ioOnClosedChannel))
            return
        }
        // The last one to ask gets the bytes; nobody waits for ever.
        bodies[bodies.startIndex].finish(with: .failure(CancellationError()))
        bodies[bodies.startIndex].demand = Demand(
            buffer: buffer, byteCount: min(limit, buffer.freeCount), wait: wait)
        serve()
        readIfWanted()
    }

    /// Ends the wait for bytes, if it has not ended; what has come stays.
    fileprivate func cancelFill(_ wait: BodyWait) {
        guard bodies.first?.demand?.wait === wait else { return }
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
        demand?.wait.end(with: result)
        demand = nil
    }
}

/// One wait for bytes, between the task that waits and the event loop that ends it.
///
/// The buffer's bytes become the task's with the lock, not with the continuation alone: the sanitizer does not see
/// all that the runtime does to resume a task, and would report a race.
private final class BodyWait: Sendable {
    private struct State {
        var isCancelled = false
        var continuation: CheckedContinuation<Void, Never>?
        var result: BodyIntake.FillResult?
    }

    private let state = Mutex(State())

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func cancel() { state.withLock { $0.isCancelled = true } }

    /// Waits for the end of what `begin` begins.
    func wait(_ begin: () -> Void) async throws -> Bool {
        await withCheckedContinuation { continuation in
            state.withLock { $0.continuation = continuation }
            begin()
        }
        guard let result = state.withLock({ $0.result }) else {
            preconditionFailure("a wait for bytes was ended without a result")
        }
        return try result.get()
    }

    func end(with result: BodyIntake.FillResult) {
        let continuation = state.withLock { state in
            precondition(state.result == nil, "a wait for bytes was ended twice")
            state.result = result
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
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
        let wait = BodyWait()
        return try await withTaskCancellationHandler {
            try await wait.wait {
                eventLoop.execute {
                    // Whoever was cancelled before this has nobody to wake it.
                    if wait.isCancelled {
                        wait.end(with: .failure(CancellationError()))
                    } else {
                        intake.value.fill(buffer, limit: limit, wait)
                    }
                }
            }
        } onCancel: {
            wait.cancel()
            eventLoop.execute { intake.value.cancelFill(wait) }
        }
    }

    /// The fields after the body, once it has been read to its end; empty when there are none.
    ///
    /// - Throws: When the connection is gone.
    func trailers() async throws -> HTTPFields {
        try await eventLoop.submit { intake.value.trailers ?? HTTPFields() }.get()
    }
}
