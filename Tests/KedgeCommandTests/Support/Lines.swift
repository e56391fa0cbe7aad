import Foundation
import KedgeModel

/// One object of `--json`.
struct TransferLine: Decodable, Sendable {
    var version: Int
    var type: String
    var transferId: String?
    var direction: String?
    var name: String?
    var state: String
    var pauseReason: String?
    var bytesTransferred: Int64?
    var size: Int64?
    var remoteFileId: String?
    var fileHashSha256: String?
    var verification: String?
    var integrityFailureCount: Int?
    var offersRetryFromScratch: Bool?
    var path: String?
    var errorCode: String?
    var message: String?
    var cause: String?
    var host: String?
    var port: Int?
    var attempt: Int?
    var nextAttemptAt: String?

    /// Parses all lines of an output.
    static func all(_ output: String) throws -> [TransferLine] {
        try output.split(separator: "\n", omittingEmptySubsequences: true)
            .map { try JSONDecoder().decode(TransferLine.self, from: Data($0.utf8)) }
    }
}

/// The output of `transfers diagnose`.
struct Diagnosis: Decodable, Sendable {
    var version: Int
    var transferId: String
    var state: String
    var errorCode: String?
    var lastServerStatus: Int?
    var size: Int64?
    var chunkSize: Int64
    var totalChunks: Int?
    var confirmedChunks: Int
    var missingRanges: [[Int]]
    var repeatedChunks: [String: Int]
    var totalAttempts: Int
    var sessionId: String?
    var remoteChangeCount: Int?

    /// Indexes of the confirmed chunks.
    var confirmed: Set<Int> {
        Set(0..<(totalChunks ?? 0)).subtracting(missingRanges.flatMap { $0[0]...$0[1] })
    }
}

/// A server process and its log.
struct Server: Sendable {
    let process: ChildProcess
    let port: UInt16
    var isSecure = false

    var url: String { "\(isSecure ? "https" : "http")://127.0.0.1:\(port)" }

    /// The port in the log line with the server's address.
    static func port(in log: String) -> UInt16? {
        guard
            let line = log.split(separator: "\n").first(where: {
                $0.contains("serving on http")
            }),
            let address = line.components(separatedBy: "://").dropFirst().first,
            let port = address.split(separator: ":").dropFirst().first?.prefix(while: \.isNumber),
            // An incomplete line may have an incomplete port.
            address.contains(",")
        else { return nil }
        return UInt16(port)
    }

    /// The requests in the log so far.
    var requests: [LogEntry] { LogEntry.all(process.errors) }
}

extension [Server] {
    var requests: [LogEntry] { flatMap(\.requests) }
}

/// One request in the server's log.
struct LogEntry: Decodable, Sendable {
    var chunkIndex: Int?
    var chunkOutcome: String?
    /// First byte that the request sent, when it sent part of a chunk.
    var firstByte: Int64?
    var sessionID: String?
    var method: String
    var route: String
    var status: Int
    var errorCode: String?
    /// Bytes of the request's body that the server read.
    var bodyByteCount: Int64
    /// The times at which the request began and ended.
    var begin: Timestamp
    var end: Timestamp

    private enum CodingKeys: String, CodingKey {
        case chunkIndex = "chunk.index"
        case chunkOutcome = "chunk.outcome"
        case chunkRange = "chunk.range"
        case sessionID = "session.id"
        case method = "http.method"
        case route = "http.route"
        case status = "http.status"
        case errorCode = "error.code"
        case bodyByteCount = "body.bytes"
        case duration = "duration.ms"
        case time
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        func text(_ key: CodingKeys) throws -> String? {
            try values.decodeIfPresent(String.self, forKey: key)
        }
        chunkIndex = try text(.chunkIndex).flatMap { Int($0) }
        chunkOutcome = try text(.chunkOutcome)
        firstByte = try text(.chunkRange).flatMap { ContentRange($0)?.range?.start }
        sessionID = try text(.sessionID)
        method = try values.decode(String.self, forKey: .method)
        route = try values.decode(String.self, forKey: .route)
        status = Int(try values.decode(String.self, forKey: .status)) ?? 0
        errorCode = try text(.errorCode)
        bodyByteCount = try text(.bodyByteCount).flatMap { Int64($0) } ?? 0
        let duration = Double(try text(.duration) ?? "") ?? 0
        let time = Timestamp(try values.decode(String.self, forKey: .time))
        end = time ?? Timestamp(millisecondsSinceEpoch: 0)
        begin = end.advanced(by: .milliseconds(-duration))
    }

    /// Parses the requests in a log; other lines are skipped, also one that a kill truncated.
    static func all(_ log: String) -> [LogEntry] {
        log.split(separator: "\n").compactMap { line in
            guard line.contains("\"message\":\"request\"") else { return nil }
            return try? JSONDecoder().decode(LogEntry.self, from: Data(line.utf8))
        }
    }
}

extension [LogEntry] {
    var chunks: [LogEntry] { filter { $0.method == "PUT" && $0.chunkIndex != nil } }
    var sessionIDs: Set<String> { Set(compactMap(\.sessionID)) }

    /// The number of times that each chunk was stored as new.
    var created: [Int: Int] { counts { $0.chunkOutcome == "created" } }

    /// The number of requests of each chunk that meet a condition.
    func counts(where condition: (LogEntry) -> Bool) -> [Int: Int] {
        chunks.filter(condition).reduce(into: [:]) { $0[$1.chunkIndex ?? -1, default: 0] += 1 }
    }
}
