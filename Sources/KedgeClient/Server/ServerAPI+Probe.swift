internal import HTTPTypes
internal import KedgeModel

extension ServerAPI {
    /// Any answer at all, as it came.
    struct Probe: Sendable {
        let reply: ServerReply
        /// Empty for more than a message of the contract has.
        let body: [UInt8]
        /// From sending the request to the end of the answer.
        let duration: Duration

        var status: Int { reply.status }
        var fields: HTTPFields { reply.headerFields }
    }

    /// Asks an address of which nothing is known: no status is an error.
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
            // What is too large is no message of the contract.
            guard error.kind == .other else {
                throw RequestFailure(error, operation: call.operation)
            }
            body = []
        }
        return Probe(reply: response, body: body, duration: start.duration(to: clock.now))
    }
}
