/// The operations that a link permits.
public enum LinkOperation: String, CaseIterable, Codable, Sendable {
    /// Creates uploads.
    case put
    /// Continues one upload, and asks for its status.
    case session
    /// Reads one file.
    case get
}

/// Whether a browser shows the file of a link or saves it.
public enum LinkDisposition: String, CaseIterable, Codable, Sendable {
    /// The browser shows the file, if its type is safe to show.
    case inline
    /// The browser saves the file.
    case attachment
}

/// Body of `POST /links`.
///
/// Unlike in other requests, an unknown member is refused: it could be a misspelled limit.
public struct CreateLinkRequest: Codable, Hashable, Sendable {
    /// The operations that the link permits.
    public var op: LinkOperation
    /// Time for which the link is valid.
    public var expiresInSeconds: Int64
    /// `get`: the file.
    public var fileId: FileID?
    /// `session`: the session.
    public var sessionId: SessionID?
    /// `put`: the name that the file gets. `get`: the name under which a browser saves the file.
    public var fileName: String?
    /// `put`: the exact size of the file in bytes.
    public var fileSize: Int64?
    /// `put`: minimum size of the file in bytes.
    public var minFileSize: Int64?
    /// `put`: maximum size of the file in bytes.
    public var maxFileSize: Int64?
    /// `put`: media types such as `image/png`, and groups such as `video/*`.
    public var mimeTypes: [String]?
    /// `put`: extensions of the file's name such as `png` or `tar.gz`.
    public var fileExtensions: [String]?
    /// `put`: the SHA-256 that the file must have.
    public var fileHashSha256: SHA256Digest?
    /// `put`: metadata of the upload that its client cannot set otherwise.
    public var metadata: [String: String]?
    /// `put`: number of uploads that the link creates; nil for one.
    public var uses: Int?
    /// `put`: time after its creation for which an upload can go on; nil for that of the server.
    public var sessionLifetimeSeconds: Int64?
    /// `get`: whether a browser shows the file; nil for saving it.
    public var disposition: LinkDisposition?
    /// Origins of pages that may use the link; nil for pages of the server alone.
    public var origins: [String]?
    /// Addresses and networks from which the link may be used; nil for all.
    public var networks: [String]?

    enum CodingKeys: String, CodingKey {
        case op, expiresInSeconds, fileId, sessionId, fileName, fileSize, minFileSize, maxFileSize
        case mimeTypes, fileExtensions, fileHashSha256, metadata, uses, sessionLifetimeSeconds
        case disposition, origins, networks

        /// The operations of links that have the member.
        var operations: Set<LinkOperation> {
            switch self {
            case .op, .expiresInSeconds, .origins, .networks: [.put, .session, .get]
            case .fileId, .disposition: [.get]
            case .sessionId: [.session]
            case .fileName: [.put, .get]
            case .fileSize, .minFileSize, .maxFileSize, .mimeTypes, .fileExtensions,
                .fileHashSha256, .metadata, .uses, .sessionLifetimeSeconds:
                [.put]
            }
        }
    }

    /// Creates the message for a link without limits.
    public init(op: LinkOperation, expiresInSeconds: Int64) {
        self.op = op
        self.expiresInSeconds = expiresInSeconds
    }
}

extension CreateLinkRequest {
    /// The name of any member.
    private struct MemberName: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { return nil }
    }

    /// Decodes the message; an error names the first member that is invalid, unknown, or of another
    /// operation.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            op: try members.decode(LinkOperation.self, forKey: .op),
            expiresInSeconds: try members.decode(Int64.self, forKey: .expiresInSeconds))
        let names = try decoder.container(keyedBy: MemberName.self).allKeys
        for name in names.sorted(by: { $0.stringValue < $1.stringValue }) {
            guard let key = CodingKeys(rawValue: name.stringValue), key.operations.contains(op)
            else {
                throw DecodingError.dataCorrupted(
                    DecodingError.Context(
                        codingPath: decoder.codingPath + [name],
                        debugDescription: "the operation has no such member"))
            }
        }
        fileId = try members.decodeIfPresent(FileID.self, forKey: .fileId)
        sessionId = try members.decodeIfPresent(SessionID.self, forKey: .sessionId)
        fileName = try members.decodeIfPresent(String.self, forKey: .fileName)
        fileSize = try members.decodeIfPresent(Int64.self, forKey: .fileSize)
        minFileSize = try members.decodeIfPresent(Int64.self, forKey: .minFileSize)
        maxFileSize = try members.decodeIfPresent(Int64.self, forKey: .maxFileSize)
        mimeTypes = try members.decodeIfPresent([String].self, forKey: .mimeTypes)
        fileExtensions = try members.decodeIfPresent([String].self, forKey: .fileExtensions)
        fileHashSha256 = try members.decodeIfPresent(SHA256Digest.self, forKey: .fileHashSha256)
        metadata = try members.decodeIfPresent([String: String].self, forKey: .metadata)
        uses = try members.decodeIfPresent(Int.self, forKey: .uses)
        sessionLifetimeSeconds = try members.decodeIfPresent(
            Int64.self, forKey: .sessionLifetimeSeconds)
        disposition = try members.decodeIfPresent(LinkDisposition.self, forKey: .disposition)
        origins = try members.decodeIfPresent([String].self, forKey: .origins)
        networks = try members.decodeIfPresent([String].self, forKey: .networks)
    }
}

/// Response to `POST /links`. The link is shown once: the server does not store it.
public struct CreateLinkResponse: Codable, Hashable, Sendable {
    /// Identifies the link, to revoke it. It is not secret.
    public var linkId: String
    /// The address with the link. `put`: for the file as the body of a `POST`, also of an IETF
    /// upload. `session`: for the native protocol. `get`: of the file.
    public var url: String
    /// `put`, `session`: the address for tus clients.
    public var tusUrl: String?
    /// `put`: the address for clients of the native protocol.
    public var sessionsUrl: String?
    /// `session`: the address for IETF uploads.
    public var resumableUrl: String?
    /// The first moment at which the link is no longer valid.
    public var expiresAt: Timestamp

    /// Creates the response for a link.
    public init(
        linkId: String, url: String, tusUrl: String? = nil, sessionsUrl: String? = nil,
        resumableUrl: String? = nil, expiresAt: Timestamp
    ) {
        self.linkId = linkId
        self.url = url
        self.tusUrl = tusUrl
        self.sessionsUrl = sessionsUrl
        self.resumableUrl = resumableUrl
        self.expiresAt = expiresAt
    }
}

/// Body of `DELETE /links/{linkId}`, which may be empty.
public struct RevokeLinkRequest: Codable, Hashable, Sendable {
    /// The end of the link, until which the server remembers that it was revoked; nil for the
    /// longest life of a link from now on.
    public var expiresAt: Timestamp?

    /// Creates the message; without a time it is equivalent to an empty body.
    public init(expiresAt: Timestamp? = nil) { self.expiresAt = expiresAt }
}
