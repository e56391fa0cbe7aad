internal import KedgeEngine
internal import KedgeHash
internal import KedgeIdentity
internal import KedgeModel

/// The one place where every protocol applies the limits of a `put` link.
extension NewSession {
    /// Returns the session as the principal may create it. A link sets what it says, and limits the
    /// rest.
    ///
    /// - Parameter declaredName: The file name that the client sent; nil without one.
    /// - Throws: `FORBIDDEN`, `FILE_TOO_LARGE`.
    func permitted(to principal: Principal, declaredName: String?) throws -> NewSession {
        var new = self
        if principal.kind != .anonymous { new.permit.createdBy = principal.creator }
        guard let link = principal.link, case .put(let limits) = link.grant else { return new }
        guard adopting == nil else {
            throw EngineError(.forbidden, "A link does not permit to adopt another upload.")
        }
        let violation = limits.check(
            fileName: declaredName, byteCount: fileSize, mimeType: mimeType,
            digest: declaredDigest)
        if let violation { throw EngineError(violation, limits) }
        new.fileName = limits.fileName ?? fileName
        // A final upload has the size of its partial uploads.
        if sourceIDs == nil { new.fileSize = fileSize ?? limits.byteCount }
        new.declaredDigest = limits.digest ?? declaredDigest
        new.metadata = limits.mergedMetadata(over: metadata)
        new.permit.maxByteCount = limits.byteCountLimit
        new.permit.minByteCount = limits.byteCount ?? limits.minByteCount
        new.permit.link = LinkUse(
            linkID: link.id.text, maxUses: limits.uses,
            fingerprint: new.fingerprint, expiresAt: link.expiresAt)
        return new
    }

    /// Identifies a repetition of the creation by a one-use link, whose answer was lost.
    private var fingerprint: String {
        var lines = [
            fileSize.map { String($0) } ?? "", fileName, mimeType ?? "",
            declaredDigest?.hex ?? "",
        ]
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) { lines += [key, value] }
        // The length before each text keeps the border between two of them.
        let text = lines.map { "\($0.utf8.count):\($0)" }.joined()
        return SHA256Hasher.digest(of: Array(text.utf8)).hex
    }
}

extension EngineError {
    fileprivate init(_ violation: LinkViolation, _ limits: LinkConstraints) {
        self.init(violation.code, violation.sentence)
        if violation == .tooLarge { maxBytes = limits.byteCountLimit }
    }
}
