internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel
internal import NIOCore

/// Sends ranges of a file over one connection with sendfile(2), without copying the bytes into this
/// process. Can be passed between threads.
struct FileSender: Sendable {
    private let wire: NIOLoopBound<WireHandler>
    private let eventLoop: any EventLoop

    /// - Parameter eventLoop: The event loop of the connection. The caller must be on it.
    init(_ wire: WireHandler, eventLoop: any EventLoop) {
        self.wire = NIOLoopBound(wire, eventLoop: eventLoop)
        self.eventLoop = eventLoop
    }

    /// Starts sending a range as the next part of the body whose head has been written.
    ///
    /// - Parameter handle: Must stay open until the future completes.
    /// - Returns: A future that completes when the last byte has been handed to the kernel.
    func send(_ range: ByteRange, of handle: NIOFileHandle) -> EventLoopFuture<Void> {
        eventLoop.flatSubmit {
            let promise = eventLoop.makePromise(of: Void.self)
            let region = FileRegion(
                fileHandle: handle, readerIndex: Int(range.start), endIndex: Int(range.end))
            wire.value.send(region, promise: promise)
            return promise.futureResult
        }
    }
}

/// The connection of the request that the current task answers, below Hummingbird.
struct RawConnection: Sendable {
    /// Nil without a connection, as in a simulation.
    @TaskLocal static var current: RawConnection?

    let bodies: BodySource
    /// Nil under TLS, for which the bytes must pass through this process.
    let files: FileSender?
    /// Progress of the current request's body.
    let progress: BodyProgress
    let interim: InterimPolicy

    /// The trailer fields of the request (RFC 9110 section 6.5), available once the body has been
    /// read to its end; empty when there are none.
    ///
    /// - Throws: An error when the event loop has shut down.
    func trailers() async throws -> HTTPFields { try await bodies.trailers() }
}
