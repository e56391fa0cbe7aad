import Foundation
import KedgeModel
import KedgeTesting
import Testing

extension [Server] {
    /// Expects of servers that ran one after the other on a data directory: each chunk of each
    /// session was stored once, and the sample is the only file.
    func expectTakenOnce(
        _ source: SampleFile, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let requests = requests
        for session in requests.sessionIDs {
            let created = requests.filter { $0.sessionID == session }.created
            #expect(created.filter { $0.value > 1 } == [:], sourceLocation: sourceLocation)
        }
        let finalized = requests.filter { $0.route.hasSuffix("/finalize") && $0.status == 200 }
        #expect(finalized.sessionIDs.count == 1, sourceLocation: sourceLocation)
        let files = try self[count - 1].files()
        #expect(files.map(\.sha256) == [source.digest], sourceLocation: sourceLocation)
    }
}

extension Server {
    /// All files of the server.
    func files() throws -> [FileMeta] {
        var question = HTTPMessage("GET /files HTTP/1.1")
        question["Host"] = "localhost"
        question["Connection"] = "close"
        guard let answer = HTTPMessage.exchange(question, with: port) else {
            throw TestFailure("no list of files")
        }
        return try JSONDecoder().decode(FileList.self, from: Data(answer.body)).files
    }
}
