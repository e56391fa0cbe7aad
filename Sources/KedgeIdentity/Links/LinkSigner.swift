package import KedgeModel
internal import KedgeSecrets

/// Writes and reads the text of links: `kl1.<key id>.<payload>.<code>`.
///
/// The payload is base64url of JSON. The code authenticates all text before its point.
package struct LinkSigner: Sendable {
    /// The beginning of each link, by which it differs from other credentials.
    package static let prefix = "kl1."
    /// Maximum size of the JSON. A link has to fit into a request line with room to spare.
    package static let maxPayloadByteCount = 2048

    /// Number of characters of a code.
    private static let codeWidth = 43
    private static let point = UInt8(ascii: ".")

    private let keys: LinkKeys

    package init(keys: LinkKeys) { self.keys = keys }

    /// Returns the text of a link. Nothing is stored: the text is the link.
    ///
    /// - Throws: ``LinkSigningError``.
    package func sign(_ link: Link, at now: Timestamp) throws -> String {
        guard let key = keys.signing(at: now) else { throw LinkSigningError.noKey }
        let json = try LinkPayload(link).json()
        guard json.count <= Self.maxPayloadByteCount else { throw LinkSigningError.tooLong }
        let text = "\(Self.prefix)\(key.id).\(Base64URL.encode(json))"
        return "\(text).\(key.code(of: Array(text.utf8)))"
    }

    /// Whether the text names a key that the signer does not have. It may be younger than the
    /// signer.
    package func lacksKey(of text: String) -> Bool {
        let parts = text.split(separator: ".", maxSplits: 2)
        guard text.hasPrefix(Self.prefix), parts.count == 3 else { return false }
        return LinkKey.isWellFormed(String(parts[1])) && keys[String(parts[1])] == nil
    }

    /// Returns the link of a text.
    ///
    /// The code is compared before anything of the payload is decoded, and as text, so that no
    /// other text of the same code passes.
    package func verify(_ text: String, at now: Timestamp) throws(LinkRefusal) -> Link {
        let bytes = Array(text.utf8)
        // The places of the key's id, of the payload and of the code.
        let idStart = Self.prefix.utf8.count
        let codeStart = bytes.count - Self.codeWidth
        guard bytes.starts(with: Self.prefix.utf8), codeStart - 1 > idStart,
            bytes[codeStart - 1] == Self.point,
            let idEnd = bytes[idStart..<(codeStart - 1)].firstIndex(of: Self.point),
            let key = keys[String(decoding: bytes[idStart..<idEnd], as: UTF8.self)]
        else { throw LinkRefusal.invalid }
        let code = Array(key.code(of: Array(bytes[..<(codeStart - 1)])).utf8)
        guard ConstantTime.areEqual(code, Array(bytes[codeStart...])) else {
            throw LinkRefusal.invalid
        }
        let encoded = String(decoding: bytes[(idEnd + 1)..<(codeStart - 1)], as: UTF8.self)
        guard let json = Base64URL.decode(encoded), json.count <= Self.maxPayloadByteCount,
            let payload = LinkPayload(json: json),
            let link = Link(payload)
        else { throw LinkRefusal.invalid }
        guard key.verifies(at: now), now < link.expiresAt else { throw LinkRefusal.expired }
        if let notBefore = link.notBefore, now < notBefore { throw LinkRefusal.notYetValid }
        return link
    }
}

/// A reason why no link can be made.
package enum LinkSigningError: Error, Hashable, Sendable {
    /// No key signs now.
    case noKey
    /// The link says more than its text may hold.
    case tooLong
}
