import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Each operation of the service, without a token and with each scope alone.
@Suite(.timeLimit(.minutes(2))) struct AccessMatrixTests {
    private struct Operation {
        let method: String
        let path: String
        let access: Access

        /// - Parameter text: `METHOD /path`, with parameters in braces.
        init(_ text: String, _ access: Access) {
            let words = text.split(separator: " ")
            method = String(words[0])
            // The id of nothing, and the index of a chunk.
            path = words[1].split(separator: "/", omittingEmptySubsequences: false).map { part in
                guard part.hasPrefix("{") else { return String(part) }
                return part == "{index}" ? "0" : String(repeating: "0", count: 32)
            }.joined(separator: "/")
            self.access = access
        }

        func request(_ token: APIToken?) -> HTTPRequestBytes {
            HTTPRequestBytes(method, path, token?.fields ?? [])
        }

        func accepts(_ scope: Scope) -> Bool {
            guard case .anyOf(let scopes) = access.rule else { return true }
            return scopes.contains(scope)
        }
    }

    private static func operations(of server: RunningServer) -> [Operation] {
        ServiceOperations.all(engine: server.engine).sorted { $0.key < $1.key }
            .map { Operation($0.key, $0.value) }
    }

    @Test func `a request without a token is refused, except on public routes`() async throws {
        try await withTokenServer { server in
            let operations = Self.operations(of: server)
            #expect(operations.count > 20)
            for operation in operations {
                let answer = try await server.ask(operation.request(nil))
                let name = "\(operation.method) \(operation.path)"
                if operation.access == .public {
                    #expect(![401, 403].contains(answer.status), "\(name)")
                } else {
                    #expect(answer.status == 401, "\(name)")
                    #expect(answer.field("WWW-Authenticate") == #"Bearer realm="kedge""#, "\(name)")
                }
            }
        }
    }

    @Test(arguments: Scope.allCases)
    func `a scope permits the operations that name it, and no others`(scope: Scope) async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken([scope])
            for operation in Self.operations(of: server) {
                let answer = try await server.ask(operation.request(token))
                let name = "\(operation.method) \(operation.path)"
                if operation.accepts(scope) {
                    #expect(![401, 403].contains(answer.status), "\(name): \(answer.status)")
                } else {
                    #expect(answer.status == 403, "\(name)")
                }
            }
        }
    }

    @Test func `the method that replaces another one decides`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken([.filesRead])
            let path = "/tus/\(String(repeating: "0", count: 32))"
            let fields = token.fields + [("Tus-Resumable", "1.0.0")]
            let read = try await server.get(path, fields)
            #expect(read.status != 403)
            for (sent, meant) in [("GET", "DELETE"), ("POST", "PATCH"), ("GET", "PATCH")] {
                let answer = try await server.ask(
                    HTTPRequestBytes(
                        sent, path, fields + [("X-HTTP-Method-Override", meant)]))
                #expect(answer.status == 403, "\(sent) as \(meant)")
            }
        }
    }
}
