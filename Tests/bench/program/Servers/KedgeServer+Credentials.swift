internal import Foundation

/// Credentials of a server with `identity.mode` tokens.
extension KedgeServer {
    /// Options with which the server requires a credential.
    static let requiringCredentials = ["--identity-mode", "tokens"]

    /// The answer to a request for a link.
    private struct CreatedLink: Decodable {
        let sessionsUrl: String
    }

    /// The field of a request that has a token.
    static func field(_ token: String) -> String { "Authorization: Bearer \(token)" }

    /// Makes an API token, and returns the field of requests with it.
    func makeToken(_ bench: Bench, owner: String = "bench") throws -> String {
        let home = try bench.scratch.makeDirectory("token")
        defer { Scratch.remove(home) }
        let (output, log) = ("\(home)/output", "\(home)/log")
        let command = try BenchProcess(
            bench.settings.kedge,
            [
                "token", "create", "bench", "--owner", owner, "--scopes", "user", "--data",
                "\(directory)/data",
            ], home: home, output: output, log: log)
        guard try command.wait(limit: 60).status == 0 else {
            throw BenchFailure("kedge token create: \(try TextFile.read(log).suffix(400))")
        }
        let token = try TextFile.read(output).split(separator: "\n").first
        guard let token, token.hasPrefix("kdg_") else {
            throw BenchFailure("kedge token create printed no token")
        }
        return Self.field(String(token))
    }

    /// Makes `put` links for one session each, and returns path and query of the address at which
    /// it is created.
    func makePutLinks(_ count: Int, fields: [String]) throws -> [String] {
        let connection = try connect(fields: fields)
        return try (0..<count).map { _ in
            let url = try connection.request(
                "POST", "/links", fields: ["Content-Type: application/json"],
                body: .text(#"{"op":"put","expiresInSeconds":86400}"#)
            ).require(201, of: "making a link").decode(CreatedLink.self).sessionsUrl
            guard let path = url.range(of: "/uploads/sessions?") else {
                throw BenchFailure("a link has no address at which sessions are created")
            }
            return String(url[path.lowerBound...])
        }
    }

    /// Waits until the server accepts the credential: the keys of an issuer are fetched after the
    /// start.
    func waitUntilAccepted(fields: [String]) throws {
        try waitUntil {
            (try? connect(fields: fields).request("GET", "/me"))?.status == 200
        }
    }
}
