/// An OpenID provider on loopback, and tokens of one user that it has signed.
final class Issuer: Sendable {
    /// JSON Web Tokens, all different.
    let tokens: [String]
    private let port: UInt16
    private let process: BenchProcess

    /// Time for signing the tokens.
    private static let limitSeconds = 120.0

    /// Starts the provider and waits until it listens.
    ///
    /// - Parameter scripts: The directory of its script.
    init(_ bench: Bench, scripts: String, tokenCount: Int) throws {
        let directory = try bench.scratch.makeDirectory("issuer")
        let port = try BenchSocket.freePort()
        let process = try BenchProcess(
            try Executable.require("python3"),
            ["\(scripts)/issuer.py", "\(port)", "\(tokenCount)", directory], home: directory,
            log: "\(directory)/log")
        let began = ContinuousClock.now
        while (try? BenchSocket.connect(to: port)) == nil {
            guard process.outcome == nil, elapsedSeconds(since: began) < Self.limitSeconds else {
                throw BenchFailure(
                    "the issuer did not start: \(try TextFile.read("\(directory)/log"))")
            }
            pause(seconds: 0.01)
        }
        tokens = try TextFile.read("\(directory)/tokens").split(separator: "\n").map(String.init)
        self.port = port
        self.process = process
    }

    /// Options of a server that accepts its tokens.
    var serverOptions: [String] {
        ["--oidc-issuers", "http://127.0.0.1:\(port)", "--oidc-audience", "kedge"]
    }

    func stop() throws {
        try process.stop()
    }
}
