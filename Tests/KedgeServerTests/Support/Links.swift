import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

extension RunningServer {
    /// Makes a link with a new token of the owner.
    ///
    /// - Parameter members: The members of the request without braces.
    func makeLink(_ members: String, owner: String = "alice") async throws -> CreateLinkResponse {
        let token = try await makeToken(owner: owner)
        let answer = try await ask(.json("POST", "/links", "{\(members)}", token.fields))
        #expect(answer.status == 201)
        return try answer.decoded()
    }

    /// Makes a link that creates uploads.
    func makePutLink(_ limits: String...) async throws -> CreateLinkResponse {
        try await makeLink(
            ([#""op":"put","expiresInSeconds":3600"#] + limits).joined(separator: ","))
    }

    /// Makes a link of a session.
    func makeSessionLink(_ id: SessionID) async throws -> CreateLinkResponse {
        try await makeLink(#""op":"session","expiresInSeconds":3600,"sessionId":"\#(id)""#)
    }

    /// Makes a link of a file.
    func makeGetLink(_ id: FileID, _ more: String...) async throws -> CreateLinkResponse {
        let members = [#""op":"get","expiresInSeconds":3600,"fileId":"\#(id)""#] + more
        return try await makeLink(members.joined(separator: ","))
    }

    /// Stores a file of the owner.
    func storeFile(
        _ content: [UInt8], type: String = "text/plain", owner: String = "alice"
    ) async throws -> FileID {
        let token = try await makeToken(owner: owner)
        let fields = [
            ("Content-Type", type), ("Content-Disposition", #"attachment; filename="a.txt""#),
        ]
        let answer = try await ask(
            HTTPRequestBytes("POST", "/files", token.fields + fields, body: content))
        #expect(answer.status == 201)
        return try answer.decoded(FinalizeResponse.self).remoteFileId
    }

    /// Creates a session of the owner.
    func createSession(byteCount: Int, owner: String = "alice") async throws -> SessionID {
        let token = try await makeToken(owner: owner)
        let answer = try await ask(
            .createSession(
                CreateSessionRequest(fileName: "a.bin", fileSize: Int64(byteCount)), token.fields))
        #expect(answer.status == 201)
        return try answer.decoded(CreateSessionResponse.self).sessionId
    }
}

/// The path and query of a URL of the server under test.
func target(_ url: String?) throws -> String {
    let url = try #require(url)
    let origin = "http://localhost"
    #expect(url.hasPrefix("\(origin)/"))
    return String(url.dropFirst(origin.count))
}

/// The text of the link in a URL.
func linkText(_ url: String?) throws -> String {
    let url = try #require(url)
    let mark = try #require(url.firstRange(of: "?link="))
    return String(url[mark.upperBound...])
}

extension HTTPAnswer {
    /// The parts in which the answers for an unknown and a foreign id must be equal.
    var comparable: [String] {
        let differing: Set = ["date", "x-request-id"]
        // An answer to HEAD has no document.
        let problem = try? decoded(ProblemDocument.self)
        return fields.filter { !differing.contains($0.name.lowercased()) }
            .map { "\($0.name): \($0.value)" }
            + ["\(status)", problem?.code ?? "", problem?.detail ?? "", problem?.title ?? ""]
    }
}
