internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel
internal import NIOCore

/// Sends runs of a file over one connection without their bytes passing through this process
/// (sendfile(2)); can be passed between threads.
struct FileSender: Sendable {
    private let wire: NIOLoopBound<WireHandler>
    private let eventLoop: any EventLoop

    /// - Parameter eventLoop: That of the connection; the caller is on it.
    init(_ wire: WireHandler, eventLoop: any EventLoop) {
        self.wire = NIOLoopBound(wire, eventLoop: eventLoop)
        self.eventLoop = eventLoop
    }

    /// Begins to send a run as the next part of the body whose head has been written.
    ///
    /// - Parameter handle: Stays open until the future is done.
    /// - Returns: Done when the last byte has been handed to the kernel.
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

/// The connection whose request the current task answers, below Hummingbird.
struct RawConnection: Sendable {
    /// Nil where there is none, as in a simulation.
    @TaskLocal static var current: RawConnection?

    let bodies: BodySource
    let files: FileSender
    /// How the body of the current request comes along.
    let progress: BodyProgress
    let interim: InterimPolicy

    /// The fields after the body of the request (RFC 9110 section 6.5), once the body has been read to
    /// its end; empty when there are none.
    ///
    /// - Throws: When the connection is gone.
    func trailers() async throws -> HTTPFields { try await bodies.trailers() }
}
