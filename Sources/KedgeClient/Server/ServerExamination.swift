internal import Foundation
internal import HTTPTypes
internal import KedgeModel

/// Finds out whether a Kedge answers at an address. A captive portal and any other web server answer, too.
struct ServerExamination: Sendable {
    let api: ServerAPI
    /// Wall-clock time.
    let now: @Sendable () -> Timestamp
    /// Variables of the environment.
    let environment: [String: String]

    /// Requests of which the fastest counts.
    private static let requestCount = 3

    /// - Throws: ``RequestFailure`` when there is no answer; `TransferError` with `NOT_KEDGE` when it is not
    ///   that of a Kedge, or not of one at this path, and with another code when something before a
    ///   Kedge may have given it.
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
            trouble: answer.trouble, latencyMilliseconds: shortest / .milliseconds(1),
            clockDifferenceSeconds: fields[.date].flatMap { Timestamp(httpDate: $0) }
                // Half a second on average is cut off in the field.
                .map { 0.5 - now().duration(since: $0) / .seconds(1) },
            via: fields[.via], server: fields[.server],
            proxy: EnvironmentProxy.named(for: api.baseURL, in: environment))
    }

    private struct Answer {
        var description: ServerDescription?
        var trouble: String?
    }

    private func recognize(_ probe: ServerAPI.Probe) async throws -> Answer {
        if let problem = Self.problem(in: probe) {
            guard probe.status != 404 else {
                throw error(
                    .notKedge, "A Kedge answers at \(address), but not at this path: leave it out.")
            }
            // One that cannot work now.
            return Answer(trouble: problem.detail ?? problem.title)
        }
        let description = Self.decoded(ServerDescription.self, probe)
        if let description, description.service == ServerDescription.serviceName {
            return Answer(description: description)
        }
        // Older ones do not name themselves; this is what only they answer.
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
        // What is no such JSON is another answer, and told as one.
        try? JSONDecoder().decode(type, from: Data(probe.body))
    }

    /// What an upload would end with, and what is known besides.
    private func foreign(_ probe: ServerAPI.Probe) -> TransferError {
        let failure = RequestFailure(
            probe.reply, body: probe.body, operation: Self.operation, subject: .session)
        let isSuccess = (200...299).contains(probe.status)
        let judged = failure.atFirstContact(with: .newKedge(api.baseURL)) ?? failure
        guard isSuccess || judged.code == .notKedge else {
            // Where another service says so in the same way, it names no address.
            let place = judged.problem == nil ? "" : "\(address): "
            return error(judged.code, place + judged.message)
        }
        var answer = "status \(probe.status)"
        if let type = probe.fields[.contentType] { answer += " with \(type)" }
        if let server = probe.fields[.server] { answer += ", from \(server)" }
        return error(
            .notKedge,
            "No Kedge answers at \(address): \(answer). Check the address, and whether the network"
                + " asks for a log-in first.")
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
