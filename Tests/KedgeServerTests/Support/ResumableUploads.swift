import KedgeHash
import KedgeModel
import KedgeServer
import KedgeTesting

/// A client of one draft version of resumable uploads: its requests, and its reading of answers.
struct ResumableClient: Sendable, CustomStringConvertible {
    let interopVersion: ResumableUploadVersion

    /// Clients of every draft version with an interop number.
    static let versioned = ResumableUploadVersion.allCases.filter { $0.interopVersion != nil }
        .map(ResumableClient.init)
    static let all = ResumableUploadVersion.allCases.map(ResumableClient.init)

    var description: String { "\(interopVersion)" }

    /// The field with the completeness of an upload, for requests and answers.
    func state(isComplete: Bool) -> (String, String) {
        interopVersion == .interop3
            ? ("Upload-Incomplete", isComplete ? "?0" : "?1")
            : ("Upload-Complete", isComplete ? "?1" : "?0")
    }

    var version: [(String, String)] {
        interopVersion.interopVersion.map { [("Upload-Draft-Interop-Version", "\($0)")] } ?? []
    }

    func create(
        _ body: [UInt8], at path: String = "/files", completes: Bool,
        _ fields: [(String, String)] = []
    ) -> HTTPRequestBytes {
        HTTPRequestBytes(
            "POST", path, version + [state(isComplete: completes)] + fields, body: body)
    }

    func append(
        _ body: [UInt8], to location: String, at offset: Int, completes: Bool,
        _ fields: [(String, String)] = []
    ) -> HTTPRequestBytes {
        var all = version + [state(isComplete: completes), ("Upload-Offset", "\(offset)")]
        if interopVersion >= .interop6 {
            all.append(("Content-Type", "application/partial-upload"))
        }
        return HTTPRequestBytes("PATCH", location, all, body: body)
            .with(fields.map { ($0.0, Optional($0.1)) })
    }

    func head(_ location: String) -> HTTPRequestBytes {
        HTTPRequestBytes("HEAD", location, version)
    }

    /// Whether an answer reports a complete upload; nil when it has no such field.
    func completeness(in answer: HTTPAnswer) -> Bool? {
        let (name, complete) = state(isComplete: true)
        return answer.field(name).map { $0 == complete }
    }
}

extension RunningServer {
    /// Begins an upload with its first bytes; returns its address.
    func beginResumable(
        _ client: ResumableClient, _ body: [UInt8] = [], _ fields: [(String, String)] = []
    ) async throws -> String {
        let answer = try await askResumable(client.create(body, completes: false, fields))
        guard answer.status == 201, let location = answer.field("Location") else {
            throw ClientConnection.Failure.garbled
        }
        return location
    }

    /// Asks on a connection of its own; returns the final answer.
    func askResumable(_ request: HTTPRequestBytes) async throws -> HTTPAnswer {
        let connection = try await connect()
        try await connection.send(request)
        return try await connection.finalAnswer(to: request.method)
    }

    /// Begins a request and keeps the connection; returns when the server waits for the body.
    func hold(_ request: HTTPRequestBytes) async throws -> ClientConnection {
        let connection = try await connect()
        let length =
            request.fields.contains { $0.name == "Transfer-Encoding" }
            ? nil : String(request.body?.count ?? 0)
        try await connection.send(
            request.with([("Expect", "100-continue"), ("Content-Length", length)]).head)
        guard try await connection.answer().status == 100 else {
            throw ClientConnection.Failure.garbled
        }
        return connection
    }

    /// The bytes of the file in an answer.
    func fileBytes(_ answer: HTTPAnswer) async throws -> [UInt8] {
        try await get("/files/\(try answer.decoded(FinalizeResponse.self).remoteFileId)").body
    }
}

extension ClientConnection {
    /// The next answer that is not an interim one.
    func finalAnswer(to method: String = "GET") async throws -> HTTPAnswer {
        while true {
            let answer = try await answer(to: method)
            if answer.status >= 200 { return answer }
        }
    }
}
