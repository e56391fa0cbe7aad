import HTTPTypes
import Hummingbird
import KedgeClient
import KedgeLocks
import NIOCore

/// The network between one client process and the server.
final class SimulatedLink: HTTPTransport {
    /// The address that clients of a world know.
    static let address = "http://127.0.0.1:8080"

    private let world: World
    private let server: ServerMachine
    private let isDown = Mutex(false)

    init(_ world: World, server: ServerMachine) {
        self.world = world
        self.server = server
    }

    /// Stops all traffic: the client's process is gone.
    func takeDown() { isDown.withLock { $0 = true } }

    /// Does nothing: the link outlives a client object, and the next one of the same process uses
    /// it.
    func shutdown() async {}

    /// The fate of one request.
    private struct Fate: Sendable {
        var isLost = false
        var requestLimit: Int?
        var flippedByte: Int?
        var losesAnswer = false
        var answerLimit: Int?
        var flipsAnswer = false
        var isRepeated = false
    }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        var body = try request.body?.read() ?? []
        let path = String(request.url.dropFirst(Self.address.count))
        let fate = drawFate(request, path, byteCount: body.count)
        world.count { $0.requests += 1 }
        world.note("\(request.method.rawValue) \(Self.shape(of: path)) of \(body.count) bytes")
        let original = body
        if let place = fate.flippedByte { body[place] ^= 0x10 }
        await world.awaitLatency()
        if isDown.withLock({ $0 }) || server.process == nil { throw TransportError(.offline) }
        let exchange = Exchange()
        if !fate.isLost {
            deliver(request, path, body, limit: fate.requestLimit, exchange)
            if fate.isRepeated { deliverLater(request, path, original) }
        }
        request.onBytesSent?(Int64(fate.requestLimit ?? body.count))
        return try await answer(to: request, path, exchange, fate)
    }

    private func answer(
        to request: TransportRequest, _ path: String, _ exchange: Exchange, _ fate: Fate
    ) async throws(TransportError) -> TransportResponse {
        // The task ends by itself and does not disturb a connection that has ended before.
        let limit = Task { [world] in
            try await world.scheduler.sleep(for: request.stallTimeout ?? .seconds(30))
            exchange.cut()
        }
        let head = await withTaskCancellationHandler {
            await exchange.head()
        } onCancel: {
            exchange.cut()
        }
        limit.cancel()
        if Task.isCancelled { throw TransportError(.canceled) }
        guard let head, !fate.losesAnswer, !isDown.withLock({ $0 }) else {
            world.count { $0.cutExchanges += 1 }
            exchange.cut()
            throw TransportError(fate.isLost ? .stalled : .dropped)
        }
        world.note("\(head.status) for \(request.method.rawValue) \(Self.shape(of: path))")
        return TransportResponse(
            status: head.status, headerFields: head.fields,
            body: body(of: exchange, fate, isHead: request.method == .head))
    }

    /// Delivers the request to the server, as if by a task of the server's own.
    private func deliver(
        _ request: TransportRequest, _ path: String, _ body: [UInt8], limit: Int?,
        _ exchange: Exchange
    ) {
        var fields = request.headerFields
        if request.body != nil { fields[.contentLength] = String(body.count) }
        fields[.authorization] = nil
        let head = HTTPRequest(
            method: request.method, scheme: nil, authority: "127.0.0.1:8080", path: path,
            headerFields: fields)
        let arriving = ArrivingBody(bytes: body, limit: limit, exchange: exchange, world: world)
        let incoming = Request(
            head: head,
            body: request.body == nil
                ? RequestBody(buffer: ByteBuffer()) : RequestBody(asyncSequence: arriving))
        // The task belongs to the server and goes on after the client has gone.
        Task.detached { [server] in await server.answer(incoming, exchange) }
    }

    /// Delivers a copy of the request that the network kept.
    private func deliverLater(_ request: TransportRequest, _ path: String, _ body: [UInt8]) {
        Task.detached { [self] in
            try await world.scheduler.sleep(for: world.draw(around: .seconds(5)))
            world.note("again: \(request.method.rawValue) \(Self.shape(of: path))")
            deliver(request, path, body, limit: nil, Exchange())
        }
    }

    private func body(
        of exchange: Exchange, _ fate: Fate, isHead: Bool
    ) -> TransportResponseBody {
        let received = Mutex(0)
        return TransportResponseBody { [self] () throws(TransportError) -> [UInt8]? in
            await world.awaitLatency()
            if Task.isCancelled { throw TransportError(.canceled) }
            if isDown.withLock({ $0 }) { throw TransportError(.dropped) }
            if isHead { return nil }
            let count = received.withLock { $0 }
            if let limit = fate.answerLimit, count >= limit {
                exchange.cut()
                throw TransportError(.dropped)
            }
            do {
                guard var piece = try await exchange.nextPiece() else { return nil }
                if fate.flipsAnswer, count == 0, !piece.isEmpty { piece[piece.count / 2] ^= 0x10 }
                received.withLock { $0 += piece.count }
                return piece
            } catch {
                throw TransportError(Task.isCancelled ? .canceled : .dropped)
            }
        }
    }

    private func drawFate(_ request: TransportRequest, _ path: String, byteCount count: Int) -> Fate
    {
        let weather = world.weather
        var fate = Fate()
        fate.isLost = world.isLucky(weather.losesRequest) || world.isLucky(weather.stalls)
        if count > 0, world.isLucky(weather.cutsRequest) {
            fate.requestLimit = world.draw(0...count - 1)
        }
        // Only bytes of files are damaged, because messages of the protocol have no hash.
        if request.method == .put, count > 0, world.isLucky(weather.flipsRequest) {
            fate.flippedByte = world.draw(0...count - 1)
        }
        fate.losesAnswer = world.isLucky(weather.losesAnswer)
        if world.isLucky(weather.cutsAnswer) { fate.answerLimit = world.draw(0...3000) }
        let isDownload = path.hasPrefix("/files/") && path.split(separator: "/").count == 2
        if isDownload { fate.flipsAnswer = world.isLucky(weather.flipsAnswer) }
        fate.isRepeated = world.isLucky(weather.repeatsRequest)
        return fate
    }

    /// The path without identifiers.
    private static func shape(of path: String) -> String {
        path.split(separator: "/").map { $0.count == 32 ? "*" : String($0) }.joined(separator: "/")
    }
}
