import Foundation
import KedgeModel
import KedgeTesting

/// Certificates of a test authority, made by openssl.
struct Certificates {
    /// A flaw of a certificate.
    enum Flaw: String, CaseIterable {
        case none, expired, wrongHost
    }

    /// The authority, as a PEM file.
    let authority: String
    let key: String
    private let directory: String

    static func make(in fixture: CommandEnvironment) async throws -> Certificates {
        let made = Certificates(
            authority: fixture.path("ca.pem"), key: fixture.path("server.key"),
            directory: fixture.directory)
        let curve = ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        try await openssl(
            ["req", "-x509", "-newkey"] + curve
                + ["-keyout", fixture.path("ca.key"), "-out", made.authority, "-days", "2"]
                + ["-subj", "/CN=authority of a test"], fixture)
        try await openssl(
            ["req", "-newkey"] + curve
                + ["-keyout", made.key, "-out", fixture.path("server.csr"), "-subj", "/CN=server"],
            fixture)
        for flaw in Flaw.allCases { try await made.sign(flaw, fixture) }
        return made
    }

    func path(_ flaw: Flaw) -> String { "\(directory)/\(flaw.rawValue).pem" }

    private func sign(_ flaw: Flaw, _ fixture: CommandEnvironment) async throws {
        let name = flaw == .wrongHost ? "DNS:other.example" : "IP:127.0.0.1"
        let extensions = fixture.path("\(flaw.rawValue).ext")
        try "subjectAltName=\(name)\n".write(
            toFile: extensions, atomically: false, encoding: .utf8)
        try await Self.openssl(
            ["x509", "-req", "-in", fixture.path("server.csr"), "-CA", authority]
                + ["-CAkey", fixture.path("ca.key"), "-CAcreateserial", "-extfile", extensions]
                + ["-days", flaw == .expired ? "-1" : "2", "-out", path(flaw)], fixture)
    }

    private static func openssl(_ arguments: [String], _ fixture: CommandEnvironment) async throws {
        let child = try fixture.start(program: "/usr/bin/openssl", arguments)
        let finished = try await fixture.finish(child)
        guard finished.termination == .exited(0) else { throw TestFailure(finished.errors) }
    }
}

/// Python's file server, with or without TLS.
struct PythonServer {
    let port: UInt16

    private static let program = """
        import http.server, os, ssl, sys
        os.chdir(sys.argv[1])
        handler = http.server.SimpleHTTPRequestHandler
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        if len(sys.argv) > 2:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[2], sys.argv[3])
            server.socket = context.wrap_socket(server.socket, server_side=True)
        print(server.server_address[1], flush=True)
        server.serve_forever()
        """

    /// - Parameter certificate: PEM files of the certificate and its key; none for plain HTTP.
    static func start(
        _ directory: String, certificate: [String] = [], in fixture: CommandEnvironment
    ) async throws -> PythonServer {
        let child = try fixture.start(
            program: "/usr/bin/python3", ["-c", program, directory] + certificate)
        let port: UInt16 = try await eventually("it serves") {
            if let line = child.output.split(separator: "\n").first { return UInt16(line) }
            guard child.isRunning else { throw TestFailure("no server: \(child.errors)") }
            return nil
        }
        return PythonServer(port: port)
    }
}
