internal import Foundation
internal import HTTPTypes
internal import KedgeModel
internal import KedgeTransport

/// Finds out whether a Kedge server answers at an address. Captive portals and other web servers
/// answer, too.
struct ServerProbe: Sendable {
    let api: ServerAPI
    /// Proxy of the configuration; nil for that of the environment.
    let proxy: String?
    let now: @Sendable () -> Timestamp
    let environment: [String: String]

    /// Number of requests; the fastest one counts.
    private static let requestCount = 3

    /// Examines the server.
    ///
    /// - Throws: ``RequestFailure`` when there is no answer. `TransferError` with `NOT_KEDGE` when
    ///   no Kedge server answers; with another code when an intermediary may have answered, when
    ///   the Kedge is not at this path, and when it refuses the request.
    func report() async throws -> ServerReport {
        var probe = try await api.probe("/readyz")
        var shortest = probe.duration
        for _ in 1..<Self.requestCount {
            probe = try await api.probe("/readyz")
            shortest = min(shortest, probe.duration)
        }
        let answer = try await recognize(probe)
        let fields = probe.fields
        return ServerReport(
            address: URLText.redacted(api.baseURL), version: answer.description?.version,
            protocols: answer.description?.protocols, limits: answer.description?.limits,
            trouble: answer.trouble, troubleCode: answer.troubleCode,
            latencyMilliseconds: shortest / .milliseconds(1),
            clockDifferenceSeconds: fields[.date].flatMap { Timestamp(httpDate: $0) }
                // The field drops fractions of a second: half a second on average.
                .map { 0.5 - now().duration(since: $0) / .seconds(1) },
            via: fields[.via], server: fields[.server],
            proxy: EnvironmentProxy.used(
                for: api.baseURL, configured: proxy, in: environment))
    }

    private struct Answer {
        var description: ServerDescription?
        var trouble: String?
        var troubleCode: ErrorCode?
    }

    private func recognize(_ probe: ServerAPI.Probe) async throws -> Answer {
        if let problem = Self.problem(in: probe) {
            guard probe.status != 404 else {
                throw error(
                    .routeNotFound,
                    "A Kedge answers at \(address), but not at this path: leave it out.")
            }
            let failure = probe.reply.failure(Self.operation, .session)
            guard failure.isRetryable else {
                throw error(failure.code, "\(address): \(failure.message)")
            }
            // The server is a Kedge and not ready.
            return Answer(trouble: problem.detail ?? problem.title, troubleCode: failure.code)
        }
        let description = Self.decoded(ServerDescription.self, probe)
        if let description, description.service == ServerDescription.serviceName {
            return Answer(description: description)
        }
        // Older servers do not name themselves. Only Kedge answers an unknown session like this.
        let none = SessionID(wellFormed: String(repeating: "0", count: 32))
        if description?.status == "ready",
            Self.problem(in: try await api.probe("/uploads/sessions/\(none.text)")) != nil
        {
            return Answer(description: description)
        }
        throw foreign(probe)
    }

    private static func problem(in probe: ServerAPI.Probe) -> ProblemDocument? {
        guard let problem = decoded(ProblemDocument.self, probe),
            problem.type == "urn:kedge:error:\(problem.code)"
        else { return nil }
        return problem
    }

    private static func decoded<Value: Decodable>(
        _ type: Value.Type, _ probe: ServerAPI.Probe
    ) -> Value? {
        // Anything else is another server's answer, and is reported as such.
        try? JSONDecoder().decode(type, from: Data(probe.reply.body))
    }

    /// Returns the error that an upload would end with, with further facts.
    private func foreign(_ probe: ServerAPI.Probe) -> TransferError {
        let failure = probe.reply.failure(Self.operation, .session)
        let isSuccess = (200...299).contains(probe.status)
        let judged = failure.atFirstContact(with: .newKedge(api.baseURL)) ?? failure
        guard !failure.speaksTus else {
            return error(
                .notKedge,
                "A tus server answers at \(address), not a Kedge. Upload with --protocol tus.")
        }
        guard isSuccess || judged.code == .notKedge else {
            // The text of a problem document does not name the address.
            let place = judged.problem == nil ? "" : "\(address): "
            return error(judged.code, place + judged.message)
        }
        var answer = "status \(probe.status)"
        if let type = probe.fields[.contentType] { answer += " with \(type)" }
        if let server = probe.fields[.server] { answer += ", from \(server)" }
        return error(
            .notKedge,
            "No Kedge answers at \(address): \(answer). Check the address, and whether the network"
                + " requires a login first.")
    }

    private static let operation = "examine server"

    private var address: String { URLText.redacted(api.baseURL) }

    private func error(_ code: ErrorCode, _ explanation: String) -> TransferError {
        TransferError(
            code, operation: Self.operation, resource: api.baseURL, explanation: explanation)
    }
}

extension HTTPField.Name {
    static let via = constant("Via")
}
