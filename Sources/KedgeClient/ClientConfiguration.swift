internal import Foundation
public import KedgeModel
public import Logging

/// What a ``TransferClient`` needs to know.
public struct ClientConfiguration: Sendable {
    /// Base URL of the Kedge server, for example `https://files.example.org`; for uploads in another
    /// ``UploadDialect`` the URL at which they are begun, for example `https://example.org/files/`.
    public var serverURL: String
    /// Sent to that server as bearer token, and to nobody else; never stored or logged.
    public var token: String?
    /// Directory of the transfer records; nil for `$XDG_STATE_HOME/kedge`, by default
    /// `~/.local/state/kedge`. Made with mode 0700. Several processes may share it.
    public var stateDirectory: String?
    /// Transfers that run at a time in this client; 2. More share the same link and slow each other.
    public var maxConcurrentTransfers = 2
    /// Chunks of one transfer in flight at a time, at most, each over a connection of its own: nil for 4, or
    /// fewer where they would hold more than 16 MiB. A number that is set counts as it is, up to what the
    /// server allows: each chunk in flight holds its size in memory, 8 MiB at most. More helps on links
    /// with long ways, and takes other transfers' share of the link (R126).
    public var connections: Int?
    /// Chunk size asked of the server, in bytes; 4 MiB. Smaller loses less at a drop, larger has less
    /// overhead; the server's answer counts (R9, R10).
    public var chunkSize = ChunkLayout.defaultChunkSize
    /// How long an unreachable server is waited for before ``TransferClient/run(_:)`` returns with the
    /// transfer still `queued`; nil waits for ever.
    public var patience: Duration?
    /// The same until the server has answered for the first time ever, by the records; nil waits as
    /// ``patience`` says. What waiting cannot help ends at once then: a name that does not exist, a
    /// refusal of TLS, a redirect, an answer that is no Kedge's.
    public var firstAnswerPatience: Duration?
    /// PEM file of the certificate authorities to trust in place of the system's; nil for the one that
    /// `SSL_CERT_FILE` names, or else the system's. Used by the client's own transport only.
    public var caFile: String?
    /// When failed requests are repeated.
    public var retry = RetryPolicy()
    /// Whether a download that hit a full disk keeps what it has, so that it goes on once there is
    /// space; true. False gives the space back at once, and the download begins anew (R115, R116).
    public var keepsPartialDownloadsOnFullDisk = true
    /// Free space at a download's destination below which a full disk gets its space back whatever
    /// ``keepsPartialDownloadsOnFullDisk`` says: the temporary file goes, and the download begins anew
    /// (R116). In bytes; 0 for never.
    public var criticalFreeByteCount: Int64 = 0
    /// Where decisions and failures are logged.
    public var logger = Logger(label: "kedge.client")

    /// Makes a configuration of the defaults.
    public init(serverURL: String, token: String? = nil, stateDirectory: String? = nil) {
        self.serverURL = serverURL
        self.token = token
        self.stateDirectory = stateDirectory
    }

    /// Path of the SQLite file.
    var storePath: String {
        let environment = ProcessInfo.processInfo.environment
        // The XDG specification wants relative values ignored.
        let base = environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = environment["HOME"] ?? NSHomeDirectory()
        let directory = stateDirectory ?? "\(base ?? "\(home)/.local/state")/kedge"
        return LocalPath.absolute(directory) + "/transfers.sqlite"
    }
}

/// What an upload may say beyond the path of its file.
public struct UploadOptions: Sendable {
    /// Name for the server; nil for the file's own.
    public var fileName: String?
    /// MIME type; nil guesses from the name.
    public var mimeType: String?
    /// Chunk size to ask for, in bytes; nil for the client's. In other dialects than the native one it is
    /// only how progress is counted: requests carry as much as gets through.
    public var chunkSize: Int64?
    /// How the server is spoken to; natively.
    public var dialect: UploadDialect
    /// A session of the server to go on with, begun by another client or with records that are gone; nil
    /// begins one.
    ///
    /// The file is compared with everything that the server has of the session before a byte is sent, and
    /// the transfer fails with `SESSION_FILE_MISMATCH`, with nothing changed on the server, when it is
    /// another one. No other session is begun: one that is unknown or expired fails the transfer. Only in
    /// the native dialect.
    public var sessionID: SessionID?

    /// Makes options.
    public init(
        fileName: String? = nil, mimeType: String? = nil, chunkSize: Int64? = nil,
        dialect: UploadDialect = .native, sessionID: SessionID? = nil
    ) {
        self.fileName = fileName
        self.mimeType = mimeType
        self.chunkSize = chunkSize
        self.dialect = dialect
        self.sessionID = sessionID
    }
}

/// What a download may say beyond what and where to.
public struct DownloadOptions: Sendable {
    /// Whether an existing file at the destination is replaced; false.
    public var overwrites: Bool
    /// SHA-256 that the file must have; outranks what the server says.
    public var expectedSHA256: SHA256Digest?
    /// Whether an interrupted download goes on also where the server gives the file neither a strong
    /// ETag nor a date that is old enough, and no SHA-256 is known; false begins again. What comes of it
    /// is ``Verification/unverified``, and a mixture when the file was replaced meanwhile.
    public var resumesUnverified: Bool

    /// Makes options.
    public init(
        overwrites: Bool = false, expectedSHA256: SHA256Digest? = nil,
        resumesUnverified: Bool = false
    ) {
        self.overwrites = overwrites
        self.expectedSHA256 = expectedSHA256
        self.resumesUnverified = resumesUnverified
    }
}
