internal import HTTPTypes
internal import KedgeFiles
internal import KedgeLocks
internal import NIOCore
internal import NIOHTTPTypes

/// Moves request bodies from a connection straight into the buffers of their readers.
///
/// Bodies bypass Hummingbird's queue of parts. That queue wakes a task for every buffer of a few
/// kilobytes, which costs more than moving its bytes. Here a reader hands over a buffer and is
/// woken once, when the buffer is full. Without a waiting reader, no more is read from the socket
/// than one read brings.
///
/// Confined to its event loop. Comes after the handlers that measure time, because they must see
/// every buffer.
final class BodyIntake: ChannelDuplexHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// A reader's pending request for bytes.
    fileprivate struct Demand {
        let buffer: IOBuffer
        var byteCount: Int
        let wait: BodyWait
    }

    /// True when the buffer has all requested bytes, false when the body has ended.
    typealias FillResult = Result<Bool, any Error>

    /// The unread part of one request's body.
    fileprivate struct IncomingBody {
        // Most requests have no body.
        var pieces = CircularBuffer<ByteBuffer>(initialCapacity: 0)
        var end: FillResult?
        var trailers: HTTPFields?
        var demand: Demand?
    }

    /// Bodies of the requests that have begun and are not answered, in order. Requests may be
    /// pipelined: a task may be reading the first body while the last one still arrives.
    private var bodies = CircularBuffer<IncomingBody>()
    private var heldByteCount = 0
    /// Whether a requested read is held back.
    private var owesRead = false
    private var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    /// Also called when the connection closes. Hummingbird's handler before this one does not
    /// forward that event.
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
            // Bytes without an open request are the rest of a body that was already answered.
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

    /// Appends up to `limit` bytes of the current body, then ends the wait.
    fileprivate func fill(_ buffer: IOBuffer, limit: Int, _ wait: BodyWait) {
        guard !bodies.isEmpty else {
            wait.end(with: .failure(ChannelError.ioOnClosedChannel))
            return
        }
        // The latest request for bytes replaces an earlier one, which must not wait forever.
        bodies[bodies.startIndex].finish(with: .failure(CancellationError()))
        bodies[bodies.startIndex].demand = Demand(
            buffer: buffer, byteCount: min(limit, buffer.freeCount), wait: wait)
        serve()
        readIfWanted()
    }

    /// Ends the wait for bytes if it is still pending. Bytes that have arrived stay in the buffer.
    fileprivate func cancelFill(_ wait: BodyWait) {
        guard bodies.first?.demand?.wait === wait else { return }
        bodies[bodies.startIndex].finish(with: .failure(CancellationError()))
    }

    /// The trailer fields of the current body; nil before its end has arrived.
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
    /// Moves bytes to the waiting reader, and wakes it when its request is complete.
    ///
    /// - Returns: The number of bytes moved.
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

/// One wait for bytes: a task waits, and the event loop ends the wait.
///
/// The lock also hands the buffer's bytes over to the task. With the continuation alone, the thread
/// sanitizer would report a race, because it does not see all that the runtime does to resume a
/// task.
private final class BodyWait: Sendable {
    private struct State {
        var isCancelled = false
        var continuation: CheckedContinuation<Void, Never>?
        var result: BodyIntake.FillResult?
    }

    private let state = Mutex(State())

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func cancel() { state.withLock { $0.isCancelled = true } }

    /// Runs `begin`, then waits for ``end(with:)``.
    func wait(_ begin: () -> Void) async throws -> Bool {
        await withCheckedContinuation { continuation in
            state.withLock { $0.continuation = continuation }
            begin()
        }
        guard let result = state.withLock({ $0.result }) else {
            preconditionFailure("a wait for bytes ended without a result")
        }
        return try result.get()
    }

    func end(with result: BodyIntake.FillResult) {
        let continuation = state.withLock { state in
            precondition(state.result == nil, "a wait for bytes ended twice")
            state.result = result
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
    }
}

/// The body of the current request. Can be passed between threads.
struct BodySource: Sendable {
    private let intake: NIOLoopBound<BodyIntake>
    private let eventLoop: any EventLoop

    /// - Parameter eventLoop: The event loop of the connection. The caller must be on it.
    init(_ intake: BodyIntake, eventLoop: any EventLoop) {
        self.intake = NIOLoopBound(intake, eventLoop: eventLoop)
        self.eventLoop = eventLoop
    }

    /// Appends up to `limit` bytes to the buffer. Waits until that many have arrived or the body
    /// ends.
    ///
    /// - Returns: False when the body has ended.
    /// - Throws: The error that interrupted the body; `CancellationError`.
    func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool {
        guard limit > 0, buffer.freeCount > 0 else { return true }
        let wait = BodyWait()
        return try await withTaskCancellationHandler {
            try await wait.wait {
                eventLoop.execute {
                    // A wait that was cancelled before this point would never be ended.
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

    /// The trailer fields, available once the body has been read to its end; empty when there are
    /// none.
    ///
    /// - Throws: An error when the event loop has shut down.
    func trailers() async throws -> HTTPFields {
        try await eventLoop.submit { intake.value.trailers ?? HTTPFields() }.get()
    }
}
