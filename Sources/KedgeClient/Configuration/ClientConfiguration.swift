internal import Foundation
public import KedgeModel
public import KedgeTransport
public import Logging

/// Configuration of a ``TransferClient``.
public struct ClientConfiguration: Sendable {
    /// Base URL of the Kedge server, for example `https://files.example.org`. For uploads in
    /// another ``UploadProtocol``, the URL at which they are created, for example
    /// `https://example.org/files/`.
    public var serverURL: String
    /// Bearer token for that server. Never sent to another server, stored or logged.
    public var token: String?
    /// Returns a bearer token for that server; nil if ``token`` is the only one.
    ///
    /// Called before the first request if ``token`` is nil, and once more when the server refuses
    /// the token with status 401: it may have expired. Requests that wait for a token share one
    /// call. If the server refuses the next token too, or the closure throws, the transfer pauses
    /// (`PauseReason.signInNeeded`) and keeps its progress; see ``TransferClient/tokenChanged()``.
    /// The user sees the explanation of a ``TransferError`` that it throws, and no other text. The
    /// call is canceled when no request waits for it any more.
    public var getToken: (@Sendable () async throws -> String)?
    /// Directory of the transfer records; nil for `$XDG_STATE_HOME/kedge`, by default
    /// `~/.local/state/kedge`. Created with mode 0700. Several processes may share it.
    public var stateDirectory: String?
    /// Maximum number of transfers that this client runs at the same time; 2. More transfers share
    /// the same link and slow each other down.
    public var maxConcurrentTransfers = 2
    /// Maximum number of chunks in flight for one transfer, each over its own connection.
    ///
    /// Nil for 4, or fewer where they would hold more than 16 MiB of memory. An explicit number is
    /// limited only by the server. Each chunk in flight holds up to its size in memory, at most 8
    /// MiB. More connections help on links with high latency, at the expense of other transfers.
    public var connections: Int?
    /// Preferred chunk size in bytes; 4 MiB. Smaller chunks lose less when a connection drops;
    /// larger ones have less overhead. The server decides.
    public var chunkSize = ChunkLayout.defaultChunkSize
    /// Timeout for an unreachable server, after which ``TransferClient/run(_:)`` returns with the
    /// transfer still `queued`; nil waits forever.
    public var serverTimeout: Duration?
    /// Timeout for a server that has never answered, according to the records; nil for
    /// ``serverTimeout``.
    ///
    /// Failures that waiting cannot cure end such a run at once: an unknown host name, a refused
    /// TLS handshake, a redirect, or an answer that does not come from a Kedge server.
    public var firstAnswerTimeout: Duration?
    /// PEM file of the certificate authorities to trust instead of the system's. Nil for the file
    /// that `SSL_CERT_FILE` names, or else the system's. Ignored by a client that is given a
    /// transport.
    public var caFile: String?
    /// Tokens for other servers than ``serverURL`` by their base URLs, for transfers that began
    /// there and for downloads of URLs below them. Slashes at the end of a URL do not count.
    public var otherTokens: [String: String] = [:]
    /// Settings of the connections to single servers, by their URLs. Each applies to one origin
    /// only, and takes precedence over ``caFile`` and ``proxy``. Ignored by a client that is given
    /// a transport.
    public var originSettings: [String: OriginSettings] = [:]
    /// Certificate to present to the server, and to no other. Ignored by a client that is given a
    /// transport.
    public var clientCertificate: ClientCertificate?
    /// URL of the proxy for all requests, in place of the environment's; nil for that. Ignored by a
    /// client that is given a transport.
    public var proxy: String?
    /// Limits of the rates of all transfers of this client together; nil for none. Ignored by a
    /// client that is given a transport.
    public var bandwidth: BandwidthLimit?
    /// Policy for retrying failed requests.
    public var retry = RetryPolicy()
    /// Whether a download that fills the disk keeps its progress, to continue once there is space;
    /// true. False frees the space at once, and the download starts over.
    public var keepsPartialDownloadsOnFullDisk = true
    /// Free space at a download's destination, in bytes, below which a full disk overrides
    /// ``keepsPartialDownloadsOnFullDisk``: the temporary file is removed, and the download starts
    /// over. 0 for never.
    public var criticalFreeByteCount: Int64 = 0
    /// Logger for decisions and failures; at `debug`, also for each request.
    public var logger = Logger(label: "kedge.client")

    /// Creates a configuration with the default values.
    public init(serverURL: String, token: String? = nil, stateDirectory: String? = nil) {
        self.serverURL = serverURL
        self.token = token
        self.stateDirectory = stateDirectory
    }

    /// The earlier name of ``serverTimeout``.
    public var patience: Duration? {
        get { serverTimeout }
        set { serverTimeout = newValue }
    }

    /// The earlier name of ``firstAnswerTimeout``.
    public var firstAnswerPatience: Duration? {
        get { firstAnswerTimeout }
        set { firstAnswerTimeout = newValue }
    }

    /// Path of the SQLite file.
    var storePath: String {
        let environment = ProcessInfo.processInfo.environment
        // The XDG specification requires relative values to be ignored.
        let base = environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = environment["HOME"] ?? NSHomeDirectory()
        let directory = stateDirectory ?? "\(base ?? "\(home)/.local/state")/kedge"
        return LocalPath.absolute(directory) + "/transfers.sqlite"
    }
}

/// Options of an upload.
public struct UploadOptions: Sendable {
    /// File name on the server; nil for the local name.
    public var fileName: String?
    /// MIME type; nil to guess it from the name.
    public var mimeType: String?
    /// Text to store with the file on the server, by key; at most 8 KiB on a Kedge server. The key
    /// `path` is the file's path below a folder. Not supported by
    /// ``UploadProtocol/resumableUpload``.
    public var metadata: [String: String]
    /// Whether the server stores the modification time of the file, as `mtime` in the metadata;
    /// false. Not supported by ``UploadProtocol/resumableUpload``.
    public var keepsModificationTime: Bool
    /// Preferred chunk size in bytes; nil for the client's. In protocols other than
    /// ``UploadProtocol/native`` it only determines how progress is counted; request sizes adapt to
    /// the link.
    public var chunkSize: Int64?
    /// Protocol of the upload; native by default.
    public var uploadProtocol: UploadProtocol
    /// Existing session to continue, for example one of another client or of lost records; nil
    /// creates a session.
    ///
    /// Before it sends a byte, the client compares the file with everything that the server has of
    /// the session. If they differ, the transfer fails with `SESSION_FILE_MISMATCH` and changes
    /// nothing on the server. An unknown or expired session fails the transfer; no other session is
    /// created. Requires the native protocol.
    public var sessionID: SessionID?
    /// Link that permits the upload, in place of a token; nil for none.
    ///
    /// It names the server, and may name the session to continue. The records keep it, readable by
    /// this user only, until the upload has ended. A repeated call with another link continues a
    /// session that the first one began, unless the server refuses its link: then the upload starts
    /// over.
    public var link: ServiceLink?
    /// Whether all bytes are sent, even if the server has stored the same bytes for this user
    /// before; false. A new upload ends otherwise as soon as the bytes are compared by SHA-256.
    public var sendsAllBytes: Bool

    /// Creates options.
    public init(
        fileName: String? = nil, mimeType: String? = nil, chunkSize: Int64? = nil,
        uploadProtocol: UploadProtocol = .native, sessionID: SessionID? = nil,
        metadata: [String: String] = [:], sendsAllBytes: Bool = false,
        keepsModificationTime: Bool = false
    ) {
        self.fileName = fileName
        self.mimeType = mimeType
        self.chunkSize = chunkSize
        self.uploadProtocol = uploadProtocol
        self.sessionID = sessionID
        self.metadata = metadata
        self.sendsAllBytes = sendsAllBytes
        self.keepsModificationTime = keepsModificationTime
    }

    /// Creates options, by the earlier name of the protocol's parameter.
    public init(
        fileName: String? = nil, mimeType: String? = nil, chunkSize: Int64? = nil,
        dialect: UploadProtocol, sessionID: SessionID? = nil
    ) {
        self.init(
            fileName: fileName, mimeType: mimeType, chunkSize: chunkSize, uploadProtocol: dialect,
            sessionID: sessionID)
    }

    /// The earlier name of ``uploadProtocol``.
    public var dialect: UploadProtocol {
        get { uploadProtocol }
        set { uploadProtocol = newValue }
    }

    /// Whether the upload sends the metadata that these options ask for.
    func matchMetadata(of upload: UploadTransfer) -> Bool {
        metadata.allSatisfy { upload.metadata[$0] == $1 }
            && (upload.keepsModificationTime || !keepsModificationTime)
    }
}

/// Options of a download.
public struct DownloadOptions: Sendable {
    /// Whether an existing file at the destination is replaced; false.
    public var overwrites: Bool
    /// SHA-256 that the file must have. Takes precedence over the server's.
    public var expectedSHA256: SHA256Digest?
    /// Whether to resume a download that cannot be proven to be of the same file; false starts
    /// over.
    ///
    /// That is the case if the server sends neither a strong ETag nor a date that is old enough,
    /// and no SHA-256 is known. The result is ``Verification/unverified``. If the file was replaced
    /// in between, it is a mixture of both versions.
    public var resumesUnverified: Bool
    /// Whether the file gets the modification time that was stored with it, or from other servers
    /// that of `Last-Modified`; false. Without a known time it has that of the download.
    public var keepsModificationTime: Bool

    /// Creates options.
    public init(
        overwrites: Bool = false, expectedSHA256: SHA256Digest? = nil,
        resumesUnverified: Bool = false, keepsModificationTime: Bool = false
    ) {
        self.overwrites = overwrites
        self.expectedSHA256 = expectedSHA256
        self.resumesUnverified = resumesUnverified
        self.keepsModificationTime = keepsModificationTime
    }
}
