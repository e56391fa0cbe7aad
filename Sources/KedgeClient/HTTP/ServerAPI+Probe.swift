internal import HTTPTypes

extension ServerAPI {
    /// An answer of any status and content.
    struct Probe: Sendable {
        /// Its body is empty if larger than any message of the native protocol.
        let reply: ServerMessage
        /// Time from sending the request to the end of the answer.
        let duration: Duration

        var status: Int { reply.status }
        var fields: HTTPFields { reply.fields }
    }

    /// Sends a request to an unknown address: no status is an error.
    ///
    /// - Throws: ``RequestFailure`` when no answer came.
    func probe(_ path: String) async throws -> Probe {
        let clock = ContinuousClock()
        let start = clock.now
        let reply = try await exchange.reply(
            to: call("examine server", .get, path),
            reading: .wholeOrNothing(maxByteCount: Self.maxMessageByteCount))
        return Probe(reply: reply, duration: start.duration(to: clock.now))
    }
}
