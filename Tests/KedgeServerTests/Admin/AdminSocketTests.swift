import Foundation
import KedgeFiles
import KedgeIdentity
import KedgeLocks
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// The Unix socket for operators in the data directory.
@Suite(.timeLimit(.minutes(1))) struct AdminSocketTests {
    @Test(arguments: [IdentityMode.anonymous, .tokens])
    func `operators manage tokens without one`(mode: IdentityMode) async throws {
        try await withServer {
            $0.identityMode = mode
        } _: { server in
            let answer = try await server.askLocally(
                .json("POST", "/tokens", #"{"name":"x","owner":"alice","scopes":["user"]}"#))
            #expect(answer.status == 201)
            #expect(answer.field("Cache-Control") == "no-store")
            let made = try answer.decoded(TokenDescription.self)
            #expect(made.createdBy == "local:\(geteuid())")
            let token = try APIToken.parse(try #require(made.token))
            #expect(try await server.list(token).status == 200)
            let list = try await server.askLocally(HTTPRequestBytes("GET", "/tokens"))
                .decoded(TokenList.self)
            #expect(list.tokens.map(\.tokenId) == [token.id.text])

            let revoked = try await server.askLocally(
                HTTPRequestBytes("DELETE", "/tokens/\(token.id)"))
            #expect(revoked.status == 204)
            // Without identities, tokens are ignored.
            #expect(try await server.list(token).status == (mode == .tokens ? 401 : 200))
        }
    }

    @Test func `fields of a request change nothing about its principal`() async throws {
        try await withTokenServer { server in
            let weak = try await server.makeToken([.filesRead])
            for fields in [
                weak.fields, [("Authorization", "Basic x")], [("X-Forwarded-For", "192.0.2.1")],
                [("X-Forwarded-User", "alice"), ("X-Forwarded-Proto", "https")],
            ] {
                let answer = try await server.askLocally(
                    HTTPRequestBytes("GET", "/tokens", fields))
                #expect(answer.status == 200, "\(fields)")
            }
            let line = try #require(
                server.fixture.log.lines.last { $0.metadata["principal"] == "local" })
            #expect(line.metadata["owner"] == "anonymous")
        }
    }

    @Test func `the socket has the operations of operators, and no others`() async throws {
        try await withTokenServer { server in
            let operations = ServiceOperations.all(engine: server.engine)
            for (operation, access) in operations.sorted(by: { $0.key < $1.key }) {
                let words = operation.split(separator: " ").map { String($0) }
                // The id of nothing.
                let target = words[1].split(separator: "/", omittingEmptySubsequences: false)
                    .map { $0.hasPrefix("{") ? "000000000000" : String($0) }
                    .joined(separator: "/")
                let answer = try await server.askLocally(HTTPRequestBytes(words[0], target))
                if Self.isForOperators(access) {
                    #expect(![401, 403, 405].contains(answer.status), "\(operation)")
                    // A success is no problem document.
                    let problem = try? answer.decoded(ProblemDocument.self)
                    #expect(problem?.code != ErrorCode.routeNotFound.rawValue, "\(operation)")
                } else {
                    #expect([404, 405].contains(answer.status), "\(operation)")
                }
            }
            let page = try await server.askLocally(
                HTTPRequestBytes("GET", "/tokens", [("Origin", "https://evil.example")]))
            try expectProblem(page, .badRequest)
        }
    }

    private static func isForOperators(_ access: Access) -> Bool {
        guard case .anyOf(let scopes) = access.rule else { return access == .any }
        return scopes.contains(.admin) || scopes.contains(.metricsRead)
    }

    @Test func `only the user of the service can use the socket, until the service ends`()
        async throws
    {
        let environment = try await ServerEnvironment()
        try await environment.withServer { _ in
            #expect(TemporaryDirectory.mode(of: environment.socketPath) == 0o600)
        }
        #expect(TemporaryDirectory.mode(of: environment.socketPath) == nil)
        let left = try FileManager.default.contentsOfDirectory(
            atPath: environment.configuration.dataDirectory)
        #expect(!left.contains { $0.hasPrefix("admin.sock") })
    }

    @Test func `the socket of a killed process is replaced`() async throws {
        let environment = try await ServerEnvironment()
        try await environment.withServer { _ in }
        let nursery = environment.socketPath + ".new"
        try FileManager.default.createDirectory(
            atPath: nursery, withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o777])
        for path in [environment.socketPath, "\(nursery)/admin.sock"] {
            try LoopbackSocket.leave(atPath: path)
        }
        try await environment.withServer { server in
            let answer = try await server.askLocally(HTTPRequestBytes("GET", "/tokens"))
            #expect(answer.status == 200)
            #expect(TemporaryDirectory.mode(of: nursery) == nil)
            #expect(TemporaryDirectory.mode(of: environment.socketPath) == 0o600)
        }
    }

    @Test func `another file in the place of the socket stays, and the service runs`() async throws
    {
        let environment = try await ServerEnvironment()
        try await environment.withServer { _ in }
        let content = Data("mine".utf8)
        try content.write(to: URL(fileURLWithPath: environment.socketPath))
        try await environment.withServer { server in
            let health = try await server.get("/healthz")
            #expect(health.status == 200)
            #expect(environment.log.lines.contains { $0.level == .warning })
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: environment.socketPath)) == content)
    }

    @Test(arguments: [90, 120, 240])
    func `the path of the data directory may be long`(byteCount: Int) async throws {
        try await withServer {
            $0.dataDirectory += String(repeating: "x", count: byteCount)
        } _: { server in
            #expect(server.fixture.socketPath.utf8.count > byteCount)
            let answer = try await server.askLocally(HTTPRequestBytes("GET", "/tokens"))
            #expect(answer.status == 200)
        }
    }

    @Test func `without a data directory there is no socket`() async throws {
        try await withServer {
            // The test's stores are in the directory all the same.
            $0.metadata = .postgres(url: "postgres://nowhere")
            $0.bytes = .s3(url: "s3://nowhere")
        } _: { server in
            #expect(TemporaryDirectory.mode(of: server.fixture.socketPath) == nil)
        }
    }

    /// The mode of the socket already refuses other users; this is about the second check.
    @Test(.enabled(if: geteuid() == 0, "needs to become another user"))
    func `a connection of another user is closed without an answer`() async throws {
        try await withTokenServer { server in
            let directories = [
                server.fixture.directory.path, server.fixture.configuration.dataDirectory,
            ]
            for path in directories { #expect(chmod(path, 0o711) == 0) }
            #expect(chmod(server.fixture.socketPath, 0o666) == 0)
            let program = """
                import os, socket, sys
                os.setgroups([]); os.setgid(65534); os.setuid(65534)
                peer = socket.socket(socket.AF_UNIX)
                peer.settimeout(30)
                peer.connect(sys.argv[1])
                try:
                    peer.sendall(b"GET /tokens HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
                    print(len(peer.recv(1000)))
                except (BrokenPipeError, ConnectionResetError):
                    print(0)
                """
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = ["python3", "-c", program, server.fixture.socketPath]
            let output = Pipe()
            process.standardOutput = output
            try LoopbackSocket.spawning.withLock { _ in try process.run() }
            let text = String(
                decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
            process.waitUntilExit()
            #expect(text == "0\n")
            #expect(process.terminationStatus == 0)
            #expect(server.fixture.log.lines.contains { $0.metadata["user.id"] == "65534" })
            let own = try await server.askLocally(HTTPRequestBytes("GET", "/tokens"))
            #expect(own.status == 200)
        }
    }

    @Test func `at most sixteen connections are accepted at once`() async throws {
        try await withServer { server in
            var held: [ClientConnection] = []
            for _ in 0..<16 {
                let connection = try await server.connectLocally()
                #expect(
                    try await connection.ask(HTTPRequestBytes("GET", "/tokens")).status == 200)
                held.append(connection)
            }
            let late = try await server.connectLocally()
            try await late.send(HTTPRequestBytes("GET", "/tokens"))
            async let answer = late.answer()
            try await held.removeFirst().close()
            #expect(try await answer.status == 200)
        }
    }
}

extension ServerEnvironment {
    /// Path of the Unix socket for operators.
    fileprivate var socketPath: String {
        configuration.dataDirectory + "/" + AdminListener.socketName
    }
}

extension RunningServer {
    fileprivate func connectLocally() async throws -> ClientConnection {
        let directory = try SocketDirectory(fixture.configuration.dataDirectory)
        defer { withExtendedLifetime(directory) {} }
        return try await ClientConnection(path: directory.path(of: AdminListener.socketName))
    }

    /// Asks over the Unix socket.
    fileprivate func askLocally(_ request: HTTPRequestBytes) async throws -> HTTPAnswer {
        try await connectLocally().ask(request)
    }
}
