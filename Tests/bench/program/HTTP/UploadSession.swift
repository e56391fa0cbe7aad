/// The protocol of uploads in chunks, by a client that hashes nothing while the clock runs.
struct UploadSession: Sendable {
    let id: String
    let content: Content
    /// The query of its addresses: the link with which it goes on, or empty.
    private let query: String

    private struct Created: Decodable {
        let sessionId: String
        let chunkSize: Int
        let uploadLink: String?
    }

    /// The answer to finalize.
    struct Finalized: Decodable, Sendable {
        let remoteFileId: String
        let fileHashSha256: String
        let size: Int
    }

    /// - Parameter link: Path and query of a `put` link; nil for a client with other credentials.
    static func create(
        for content: Content, link: String? = nil, on connection: BenchConnection
    ) throws -> UploadSession {
        let json = """
            {"fileName":"bench","fileSize":\(content.byteCount),\
            "chunkSize":\(content.chunkByteCount)}
            """
        let created = try connection.request(
            "POST", link ?? "/uploads/sessions", fields: ["Content-Type: application/json"],
            body: .text(json)
        ).require(201, of: "creating a session").decode(Created.self)
        guard created.chunkSize == content.chunkByteCount else {
            throw BenchFailure("the server chose chunks of \(created.chunkSize) bytes")
        }
        let query = try link.map { _ in try Self.query(of: created) } ?? ""
        return UploadSession(id: created.sessionId, content: content, query: query)
    }

    private static func query(of created: Created) throws -> String {
        guard let link = created.uploadLink, let mark = link.firstIndex(of: "?") else {
            throw BenchFailure("a session that was created by a link has no link of its own")
        }
        return String(link[mark...])
    }

    var path: String { "/uploads/sessions/\(id)" }

    func path(of chunk: Content.Chunk) -> String {
        "\(path)/chunks/\(chunk.index)\(query)"
    }

    func fields(of chunk: Content.Chunk) -> [String] {
        let last = chunk.offset + chunk.byteCount - 1
        return [
            "Content-Range: bytes \(chunk.offset)-\(last)/\(content.byteCount)",
            "X-Chunk-Hash: sha256=\(chunk.digest)",
        ]
    }

    /// Sends a chunk and waits until it is acknowledged.
    func put(_ index: Int, on connection: BenchConnection) throws {
        let chunk = content.chunk(index)
        try connection.request(
            "PUT", path(of: chunk), fields: fields(of: chunk),
            body: .file(
                content.source.file, offset: chunk.sourceOffset, byteCount: chunk.byteCount)
        ).require(201, of: "chunk \(index)")
    }

    /// Sends all chunks. The connections, each on its own thread, take them in turn.
    ///
    /// - Parameter fields: Fields of every request.
    func putAll(
        to server: any Server, connectionCount: Int, fields: [String] = []
    ) throws {
        let turns = Turns(content.chunkCount)
        _ = try concurrently(connectionCount) { _ in
            let connection = try server.connect(fields: fields)
            while let index = turns.take() { try put(index, on: connection) }
        }
    }

    /// Repeats finalize until the file is there.
    func finalize(on connection: BenchConnection) throws -> Finalized {
        while true {
            let response = try connection.request("POST", path + "/finalize" + query)
                .require(200, 202, of: "finalize")
            if response.status == 200 {
                let finalized = try response.decode(Finalized.self)
                guard finalized.size == content.byteCount else {
                    throw BenchFailure("the file has \(finalized.size) bytes")
                }
                return finalized
            }
        }
    }

    /// The form in which the session's status names the received chunks.
    enum StatusForm: String {
        case list = ""
        case ranges = "?chunks=ranges"
    }

    /// Asks for the session's status, and returns the size of the answer in bytes.
    func status(_ form: StatusForm = .list, on connection: BenchConnection) throws -> Int {
        try connection.request("GET", path + form.rawValue)
            .require(200, of: "the status of a session").body.count
    }
}
