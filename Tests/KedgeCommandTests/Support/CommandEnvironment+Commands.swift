import Foundation
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

extension CommandEnvironment {
    /// Writes a file for a test.
    func sample(
        _ name: String = "source.bin", mebibytes: Int, plus rest: Int = 0, seed: UInt64 = 7
    ) throws -> SampleFile {
        try SampleFile.write(path(name), byteCount: mebibytes << 20 + rest, seed: seed)
    }

    /// Uploads a file completely and returns its id.
    func upload(_ sample: SampleFile, to url: String) async throws -> String {
        let finished = try await run(["upload", sample.path, "--server", url, "--json"])
        guard let id = try finished.result.remoteFileId else {
            throw TestFailure("not uploaded: \(finished.output)\(finished.errors)")
        }
        return id
    }

    /// Downloads a file by its id and expects it to be the sample.
    func expectServed(
        _ sample: SampleFile, id: String?, at url: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let copy = path("copy-\(UInt32.random(in: 0 ... .max))")
        let id = try #require(id, sourceLocation: sourceLocation)
        let finished = try await run(["download", id, "-o", copy, "--server", url, "--quiet"])
        #expect(finished.termination == .exited(0), sourceLocation: sourceLocation)
        #expect(try SampleFile.digest(of: copy) == sample.digest, sourceLocation: sourceLocation)
    }

    func diagnose(_ transfer: String) async throws -> Diagnosis {
        let finished = try await run(["transfers", "diagnose", transfer])
        return try JSONDecoder().decode(Diagnosis.self, from: Data(finished.output.utf8))
    }

    func transfers() async throws -> [TransferLine] {
        try TransferLine.all(try await run(["transfers", "list", "--json"]).output)
    }

    /// Waits until the only transfer meets the condition.
    func transfer(
        within limit: Duration = .seconds(20), _ condition: (TransferLine) -> Bool
    ) async throws -> TransferLine {
        let start = ContinuousClock.now
        while start.duration(to: .now) < limit {
            if let only = try await transfers().first, condition(only) { return only }
        }
        throw TestFailure("not within \(limit): \(try await transfers())")
    }

    func session(_ id: String, at url: String) async throws -> SessionStatus {
        let finished = try await run(["session", "show", id, "--server", url])
        return try JSONDecoder().decode(SessionStatus.self, from: Data(finished.output.utf8))
    }

    /// Deletes a file or a session over HTTP.
    func delete(_ path: String, at server: Server) throws {
        let text = try ask("DELETE \(path) HTTP/1.1\r\nHost: localhost\r\n", at: server)
        guard text.hasPrefix("HTTP/1.1 204") else { throw TestFailure("not deleted: \(text)") }
    }

    /// Posts a JSON body over HTTP and returns the raw answer.
    func post(_ json: String, to path: String, at server: Server) throws -> String {
        let head = "POST \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return try ask(
            "\(head)Content-Length: \(json.utf8.count)\r\n", body: json, at: server)
    }

    /// - Parameter head: The request line and the fields, except `Connection`.
    private func ask(_ head: String, body: String = "", at server: Server) throws -> String {
        let connection = try LoopbackConnection(port: server.port)
        defer { connection.close() }
        connection.send("\(head)Connection: close\r\n\r\n\(body)")
        return String(decoding: try connection.readUntilClosed(), as: UTF8.self)
    }
}

extension Finished {
    /// Expects success with a result that names the sample.
    func expectCompleted(
        _ sample: SampleFile, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(termination == .exited(0), "\(errors)", sourceLocation: sourceLocation)
        let result = try result
        #expect(result.state == "completed", "\(output)", sourceLocation: sourceLocation)
        #expect(result.fileHashSha256 == sample.digest.hex, sourceLocation: sourceLocation)
        #expect(result.size == Int64(sample.byteCount), sourceLocation: sourceLocation)
        #expect(result.version == 1, sourceLocation: sourceLocation)
        #expect(result.transferId != nil, sourceLocation: sourceLocation)
    }
}
