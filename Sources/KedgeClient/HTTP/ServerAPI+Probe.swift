internal import HTTPTypes
internal import KedgeModel
internal import KedgeTransport

extension ServerAPI {
    /// An answer of any status and content.
    struct Probe: Sendable {
        let reply: ServerReply
        /// Empty if larger than any message of the native protocol.
        let body: [UInt8]
        /// Time from sending the request to the end of the answer.
        let duration: Duration

        var status: Int { reply.status }
        var fields: HTTPFields { reply.headerFields }
    }

    /// Sends a request to an unknown address: no status is an error.
    ///
    /// - Throws: ``RequestFailure`` when no answer came.
    func probe(_ path: String) async throws -> Probe {
        let call = Call("examine server", .get, path, .file)
        let clock = ContinuousClock()
        let start = clock.now
        let response = try await send(call, fields: [:], body: nil)
        let body: [UInt8]
        do {
            body = try await response.body.collect(upTo: 1 << 20)
        } catch {
            // A larger body is no message of the native protocol.
            guard error.kind == .other else {
                throw RequestFailure(error, operation: call.operation)
            }
            body = []
        }
        return Probe(reply: response, body: body, duration: start.duration(to: clock.now))
    }
}
