internal import KedgeClient
internal import KedgeModel

/// Reads the token of a server again after the server has refused it: `kedge login` may have saved
/// another one, and a command of the settings prints a fresh one.
struct TokenRenewal: Sendable {
    let server: NamedServer
    let environment: [String: String]

    /// - Throws: `UNAUTHENTICATED` if there is no token any more.
    func callAsFunction() async throws -> String {
        do {
            let settings = try ClientSettings.load(environment: environment)
            let name = server.name.map { "@\($0)" } ?? server.url
            let now = try settings.server(name, needsAccount: false)
            if let token = try await now.credential() { return token }
        } catch let failure as CommandFailure {
            throw refusal(failure.reason)
        }
        guard let variable = environment["KEDGE_TOKEN"], !variable.isEmpty else {
            throw refusal(nil)
        }
        return variable
    }

    private func refusal(_ reason: String?) -> TransferError {
        TransferError(
            .unauthenticated, operation: "get token",
            explanation: reason.map { "No token: \($0)" }
                ?? "There is no token for \(server.place) any more; run `kedge login` again.")
    }
}
