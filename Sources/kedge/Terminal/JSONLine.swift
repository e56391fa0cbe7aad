internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// An object of the `--json` output: one per line, with a version. A version may gain members.
struct JSONLine: Encodable {
    enum Kind: String, Encodable {
        case progress
        case result
        case warning
    }

    var version = 1
    var type: Kind
    var transferId: TransferID
    var direction: TransferDirection
    var name: String
    var state: TransferState
    var pauseReason: PauseReason?
    var bytesTransferred: Int64
    var size: Int64?
    var bytesPerSecond: Double?
    var remoteFileId: FileID?
    var sessionId: SessionID?
    var uploadUrl: String?
    var fileHashSha256: SHA256Digest?
    var verification: Verification?
    /// Present and true when no byte was sent, because the server had them.
    var usedStoredBytes: Bool?
    /// Absent for zero.
    var integrityFailureCount: Int?
    /// Present and true when the file keeps arriving with another SHA-256.
    var offersRetryFromScratch: Bool?
    var path: String
    var errorCode: ErrorCode?
    var message: String?
    var cause: ConnectionCause?
    var host: String?
    var port: Int?
    var attempt: Int?
    var nextAttemptAt: Timestamp?

    static func text(_ type: Kind, _ snapshot: TransferSnapshot) -> String {
        encode(
            JSONLine(
                type: type, transferId: snapshot.id, direction: snapshot.direction,
                name: snapshot.name, state: snapshot.state, pauseReason: snapshot.pauseReason,
                bytesTransferred: snapshot.bytesTransferred, size: snapshot.totalBytes,
                bytesPerSecond: snapshot.bytesPerSecond, remoteFileId: snapshot.remoteFileID,
                sessionId: snapshot.sessionID,
                // Its query may be a credential.
                uploadUrl: snapshot.uploadURL.map { URLSecrets.hidden(in: $0) },
                fileHashSha256: snapshot.sha256, verification: snapshot.verification,
                usedStoredBytes: snapshot.usedStoredBytes ? true : nil,
                integrityFailureCount: snapshot.integrityFailureCount > 0
                    ? snapshot.integrityFailureCount : nil,
                offersRetryFromScratch: snapshot.offersRetryFromScratch ? true : nil,
                path: snapshot.path, errorCode: snapshot.errorCode, message: snapshot.message,
                cause: snapshot.failedAttempt?.cause, host: snapshot.failedAttempt?.host,
                port: snapshot.failedAttempt?.port, attempt: snapshot.failedAttempt?.attempt,
                nextAttemptAt: snapshot.failedAttempt?.nextAttemptAt))
    }

    /// Returns one line of JSON with sorted members and without terminal control characters.
    static func encode(_ value: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            let json = ControlCharacters.escaped(json: try encoder.encode(value))
            return String(decoding: json, as: UTF8.self) + "\n"
        } catch {
            preconditionFailure("the messages of the command can be encoded: \(error)")
        }
    }
}

/// A warning about one file, which does not stop the transfer.
struct WarningLine: Encodable {
    var version = 1
    var type = JSONLine.Kind.warning
    var name: String
    var message: String
}

/// An object of the service, with the version that every object of the command carries.
struct VersionedLine<Value: Encodable>: Encodable {
    private enum Member: String, CodingKey {
        case version
    }
    let value: Value

    func encode(to encoder: any Encoder) throws {
        try value.encode(to: encoder)
        var members = encoder.container(keyedBy: Member.self)
        try members.encode(1, forKey: .version)
    }
}
