/// Kedge's own server, the measured binary, with its own data directory.
final class KedgeServer: Server {
    let name = "kedge"
    let port: UInt16
    let process: BenchProcess
    let directory: String
    let certificate: Certificate?

    /// Ways to start the server that differ from a user's.
    enum Manner: Sendable {
        case plain
        /// The server answers before anything is durable: the measuring switch.
        case withoutDurability
        /// Each sync takes 5 ms longer, as on a disk that has no cache in front of it.
        case withSlowSyncs
    }

    /// Starts a server and waits until it is ready.
    ///
    /// - Parameters:
    ///   - certificate: A certificate to speak TLS with; nil for plain HTTP.
    ///   - directory: Directory of data and log; nil makes a new one.
    init(
        _ bench: Bench, manner: Manner = .plain, options: [String] = [],
        certificate: Certificate? = nil, directory: String? = nil
    ) throws {
        let directory = try directory ?? bench.scratch.makeDirectory("kedge")
        self.directory = directory
        self.certificate = certificate
        port = try BenchSocket.freePort()
        var words = [
            bench.settings.kedge, "serve", "--host", "127.0.0.1", "--port", "\(port)", "--data",
            "\(directory)/data",
        ]
        words += options
        if let certificate {
            words += ["--tls-certificate", certificate.path, "--tls-key", certificate.keyPath]
        }
        switch manner {
        case .plain: break
        case .withoutDurability: words += ["--durability", "off"]
        case .withSlowSyncs: words = try SlowSyncs.prefix(bench) + words
        }
        process = try BenchProcess(
            words[0], Array(words.dropFirst()), home: directory, log: "\(directory)/server.log")
        try waitUntil { isReady(bench) }
    }

    private func isReady(_ bench: Bench) -> Bool {
        // Until the server listens, connections are refused.
        guard certificate == nil else {
            return (try? Curl.fetch(bench, "/readyz", from: self, to: "/dev/null")) != nil
        }
        return (try? connect().request("GET", "/readyz"))?.status == 200
    }

    /// Stops the server; its data stays for the next one.
    func stop() throws {
        try process.stop()
    }

    func discard() throws {
        try stop()
        Scratch.remove(directory)
    }

    /// Whether the binary has an option. Measurements that need it ask once.
    static func hasOption(_ option: String, _ bench: Bench) throws -> Bool {
        let directory = try bench.scratch.makeDirectory("help")
        let help = try BenchProcess(
            bench.settings.kedge, ["serve", "--help"], home: directory, log: "\(directory)/help")
        _ = try help.wait(limit: 30)
        return try TextFile.read("\(directory)/help").contains(option)
    }
}
