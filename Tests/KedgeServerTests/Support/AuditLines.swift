import Foundation

/// A line of the audit log, as a reader sees it.
struct AuditLine: Decodable {
    var time: String
    var requestId: String
    var client: String?
    var principal: String?
    var owner: String?
    var actingFor: String?
    var tokenId: String?
    var linkId: String?
    var action: String
    var object: String
    var sessionId: String?
    var fileId: String?
    var target: String?
    var change: String?
    var status: Int
    var code: String?
    var suppressed: Int?
}

/// Reads the lines of an audit log.
func auditLines(at path: String) throws -> [AuditLine] {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    return try text.split(separator: "\n").map {
        try JSONDecoder().decode(AuditLine.self, from: Data($0.utf8))
    }
}
