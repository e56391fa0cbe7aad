import Foundation
import KedgeModel
import KedgeServer
import KedgeTLS
import KedgeTesting
import Testing

/// A server with TLS, and curl and openssl as its clients.
struct SecureServer: Sendable {
    let server: RunningServer
    let authority: TestAuthority
    /// The files that the settings name.
    let issued: TestAuthority.Issued

    var port: Int { server.port }
    var url: String { "https://localhost:\(port)" }

    func path(_ name: String) -> String { "\(server.fixture.directory.path)/\(name)" }

    /// Runs curl with the authority; `-i` and the like put the head into the output.
    func curl(_ arguments: [String]) async throws -> Tool {
        try await Tool.run(
            "curl",
            ["--silent", "--show-error", "--max-time", "90", "--cacert", authority.certificate]
                + arguments)
    }

    /// Runs curl, which must succeed with an answer below 400, and returns its output.
    @discardableResult
    func ask(_ arguments: [String]) async throws -> String {
        let finished = try await curl(["--fail"] + arguments)
        guard finished.status == 0 else {
            throw TestFailure("curl ended with \(finished.status): \(finished.output)")
        }
        return finished.output
    }

    /// Uploads a file in one request and returns its path at the server.
    func upload(_ source: String) async throws -> String {
        let output = try await ask([
            "--data-binary", "@\(source)", "-H", "Content-Type: application/octet-stream",
            "\(url)/files",
        ])
        let file = try JSONDecoder().decode(FinalizeResponse.self, from: Data(output.utf8))
        return "/files/\(file.remoteFileId)"
    }

    /// Downloads a file and returns its bytes.
    func download(_ path: String, _ arguments: [String] = []) async throws -> [UInt8] {
        let copy = self.path("copy-\(UInt32.random(in: 0 ... .max))")
        try await ask(arguments + ["--output", copy, "\(url)\(path)"])
        return try Array(Data(contentsOf: URL(fileURLWithPath: copy)))
    }

    /// Shakes hands with openssl, and returns its output.
    func shakeHands(_ options: [String] = []) async throws -> Tool {
        try await Tool.run(
            "openssl",
            ["s_client", "-connect", "127.0.0.1:\(port)", "-CAfile", authority.certificate]
                + options)
    }

    /// The serial number of the certificate that a new connection gets.
    func serialNumber() async throws -> String? {
        let output = try await shakeHands(["-showcerts"]).output
        guard let start = output.range(of: "-----BEGIN CERTIFICATE-----"),
            let end = output.range(of: "-----END CERTIFICATE-----")
        else { return nil }
        let seen = try server.fixture.directory.write(
            String(output[start.lowerBound..<end.upperBound]) + "\n",
            to: "seen-\(UInt32.random(in: 0 ... .max)).pem")
        return TestAuthority.serialNumber(
            in: try await Tool.require("openssl", ["x509", "-noout", "-serial", "-in", seen]))
    }

    /// The value of a metric; nil if there is none. The loopback name needs no token.
    func metric(_ series: String) async throws -> Double? {
        let text = try await ask(["\(url)/metrics"])
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(series) ") }
        return line.flatMap { Double($0.dropFirst(series.count + 1)) }
    }
}

/// Lends a server with TLS to one test.
@discardableResult
func withSecureServer<Result: Sendable>(
    _ minimum: TLSMinimum = .version12, days: Int = 2,
    _ configure: (inout ServiceConfiguration) -> Void = { _ in },
    _ body: (SecureServer) async throws -> Result
) async throws -> Result {
    // Kept until the server has stopped.
    let directory = try TemporaryDirectory()
    let authority = try await TestAuthority.make(in: directory.path)
    let issued = try await authority.issue("server", days: days)
    let result = try await withServer {
        $0.tls = TLSSettings(
            certificatePath: issued.certificate, keyPath: issued.key, minimum: minimum)
        configure(&$0)
    } _: { server in
        try await body(SecureServer(server: server, authority: authority, issued: issued))
    }
    withExtendedLifetime(directory) {}
    return result
}
