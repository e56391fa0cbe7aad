internal import Foundation
internal import KedgeModel

/// The members of a link's JSON.
struct LinkPayload: Codable {
    static let currentVersion = 1

    var version: Int
    var kind: LinkKind
    var owner: String
    /// Seconds since 1970, as in JSON web tokens.
    var expiresAt: Int64
    var notBefore: Int64?
    var id: LinkID
    var createdBy: String?
    // A `put` link.
    var maxByteCount: Int64?
    var minByteCount: Int64?
    var byteCount: Int64?
    var mediaTypes: [String]?
    var fileExtensions: [String]?
    var fileName: String?
    var digest: SHA256Digest?
    var metadata: [String: String]?
    var uses: Int?
    var sessionLifetimeSeconds: Int64?
    // A `session` link.
    var session: SessionID?
    // A `get` link.
    var file: FileID?
    var disposition: LinkedFile.Disposition?
    var savedName: String?
    // Links of all kinds.
    var origins: [String]?
    var networks: [String]?

    enum CodingKeys: String, CodingKey {
        case version = "v"
        case kind = "op"
        case owner = "o"
        case expiresAt = "exp"
        case notBefore = "nbf"
        case id
        case createdBy = "by"
        case maxByteCount = "max"
        case minByteCount = "min"
        case byteCount = "size"
        case mediaTypes = "types"
        case fileExtensions = "ext"
        case fileName = "name"
        case digest = "sha256"
        case metadata = "meta"
        case uses
        case sessionLifetimeSeconds = "sessionLife"
        case session = "s"
        case file = "f"
        case disposition = "disp"
        case savedName = "as"
        case origins = "org"
        case networks = "net"

        /// The kinds of links that have the member.
        var kinds: Set<LinkKind> {
            switch self {
            case .version, .kind, .owner, .expiresAt, .notBefore, .id, .createdBy, .origins,
                .networks:
                [.put, .session, .get]
            case .maxByteCount, .minByteCount, .byteCount, .mediaTypes, .fileExtensions, .fileName,
                .digest, .metadata, .uses, .sessionLifetimeSeconds:
                [.put]
            case .session: [.session]
            case .file, .disposition, .savedName: [.get]
            }
        }
    }
}

extension LinkPayload {
    /// Decodes a payload; nil for any other text.
    init?(json: [UInt8]) {
        // A payload that this version cannot read is refused, for whatever reason.
        guard let strict = try? JSONDecoder().decode(StrictLinkPayload.self, from: Data(json))
        else {
            return nil
        }
        self = strict.payload
    }

    /// Returns the JSON, with the members in alphabetical order.
    func json() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(self))
    }
}

/// A payload without members that this version does not know, and without those of another kind.
///
/// A later version may add a constraint. This one would not keep it, so it must refuse the link.
private struct StrictLinkPayload: Decodable {
    let payload: LinkPayload

    init(from decoder: any Decoder) throws {
        payload = try LinkPayload(from: decoder)
        let members = try decoder.container(keyedBy: MemberName.self).allKeys
        for member in members {
            let key = LinkPayload.CodingKeys(rawValue: member.stringValue)
            guard let key, key.kinds.contains(payload.kind) else {
                throw DecodingError.dataCorrupted(
                    DecodingError.Context(
                        codingPath: decoder.codingPath, debugDescription: "an unknown member"))
            }
        }
    }
}

/// The name of any member.
private struct MemberName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
}
