import KedgeClient

/// The way to a server, with somebody who looks before each request leaves and after each answer
/// came.
struct SimulatedLink: HTTPTransport {
    let server: FakeServer
    /// Told what comes next.
    let observer: @Sendable (String) -> Void

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        observer("\(request.method) is sent")
        let response = try await server.send(request)
        observer("the answer to \(request.method) is read")
        return response
    }

    func shutdown() async { await server.shutdown() }
}
