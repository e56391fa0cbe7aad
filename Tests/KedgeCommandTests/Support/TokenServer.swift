import KedgeTesting

/// A server that refuses everything, and keeps the credentials of each request.
struct TokenServer {
    private let server: ScriptedServer
    private let seen: Shared<[String]>

    /// Address without a path.
    var url: String { server.url("") }
    /// The values of `Authorization`, in order; the empty text for a request without one.
    var credentials: [String] { seen.value }

    /// - Parameter status: Status of its answers, with the reason.
    init(status: String = "503 Service Unavailable") throws {
        let seen = Shared<[String]>([])
        self.seen = seen
        server = try ScriptedServer()
        server.start { connection in
            while let request = connection.readRequest() {
                let value = request["Authorization"] ?? ""
                seen.update { $0.append(value) }
                connection.send("HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\r\n")
            }
        }
    }
}
