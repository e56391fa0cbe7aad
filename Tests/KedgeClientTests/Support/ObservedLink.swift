import KedgeClient

/// A link to a server that calls an observer before each request and after each answer.
struct ObservedLink: HTTPTransport {
    let server: FakeServer
    /// Called with a description of the next step.
    let observer: @Sendable (String) -> Void

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        observer("\(request.method) is sent")
        let response = try await server.send(request)
        observer("the answer to \(request.method) is read")
        return response
    }

    func shutdown() async { await server.shutdown() }
}
