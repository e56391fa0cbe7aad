internal import HTTPTypes
internal import KedgeModel

extension HTTPField.Name {
    static let uploadComplete = uploadField("Complete")
    static let uploadIncomplete = uploadField("Incomplete")
    static let uploadOffset = uploadField("Offset")
    static let uploadLength = uploadField("Length")
    static let uploadLimit = uploadField("Limit")
    static let uploadDraftInteropVersion = uploadField("Draft-Interop-Version")
    static let acceptPatch = HTTPField.Name(checked: "Accept-Patch")
    static let contentLocation = HTTPField.Name(checked: "Content-Location")

    private static func uploadField(_ name: String) -> Self { Self(checked: "Upload-\(name)") }

    private init(checked text: String) {
        guard let name = Self(text) else { preconditionFailure("\(text) is no field name") }
        self = name
    }
}

/// The resumable-upload fields of a request, and the fields of its response.
///
/// A field with an invalid value counts as absent, as the drafts demand.
struct ResumableUploadCall: Sendable {
    var interopVersion: ResumableUploadVersion
    /// Whether the request names exactly this version. Only then may it get a 104.
    let isVersionNamed: Bool
    let headers: HTTPFields

    init(_ headers: HTTPFields) {
        self.headers = headers
        let named = headers[.uploadDraftInteropVersion].flatMap(StructuredField.count)
            .flatMap(ResumableUploadVersion.init(interopVersion:))
        isVersionNamed = named != nil
        // Only version 3 has the inverted field, so a request with it that names no version means
        // version 3.
        let isInverted = headers[.uploadComplete] == nil && headers[.uploadIncomplete] != nil
        interopVersion = named ?? (isInverted ? .interop3 : .final)
    }

    /// Whether a request has fields of the protocol.
    static func isUsed(by headers: HTTPFields) -> Bool {
        headers[.uploadComplete] != nil || headers[.uploadIncomplete] != nil
            || headers[.uploadDraftInteropVersion] != nil
    }

    /// Whether the upload ends with this request's body; nil when the request does not state it.
    ///
    /// Reads the fields of all versions. When one of them states that more follows, it wins: a part
    /// of a file must not become a file.
    var completes: Bool? {
        let isComplete = headers[.uploadComplete].flatMap { StructuredField.boolean($0) }
        let isIncomplete = headers[.uploadIncomplete].flatMap { StructuredField.boolean($0) }
        let claims = [isComplete, isIncomplete.map { !$0 }].compactMap(\.self)
        return claims.isEmpty ? nil : !claims.contains(false)
    }

    var offset: Int64? { headers[.uploadOffset].flatMap(StructuredField.count) }

    /// Whether the request creates a resumable upload.
    ///
    /// A whole file from a client that names no supported version is a plain upload, because the
    /// client would not learn the address of a resource. A part of a file is not: it would become a
    /// wrong file. Neither is a file with `Upload-Length` in the form without versions, because the
    /// length must be checked.
    var beginsUpload: Bool {
        let hasLength =
            headers[.uploadDraftInteropVersion] == nil && interopVersion.hasLengthAndLimits
            && headers[.uploadLength] != nil
        return completes.map { isVersionNamed || hasLength || !$0 } ?? false
    }

    /// The length of the whole file in `Upload-Length`, if the version has this field.
    var declaredLength: Int64? {
        interopVersion.hasLengthAndLimits
            ? headers[.uploadLength].flatMap(StructuredField.count) : nil
    }

    /// The length of the whole file as this request states it, by `Upload-Length` or by a body that
    /// is the rest of the file; nil when it does not.
    ///
    /// - Throws: ``ResumableUploadRefusal/inconsistentLength`` when the request contradicts itself.
    func length(offset: Int64, announced: Int64?) throws -> Int64? {
        let declared = declaredLength
        guard let announced else { return declared }
        let (end, isOverflowing) = offset.addingReportingOverflow(announced)
        guard !isOverflowing else { throw ResumableUploadRefusal.inconsistentLength }
        guard let declared else { return completes == true ? end : nil }
        guard end == declared || (completes != true && end < declared) else {
            throw ResumableUploadRefusal.inconsistentLength
        }
        return declared
    }

    // MARK: Fields of answers

    /// The version field, if the request names a version.
    var versionFields: HTTPFields {
        guard isVersionNamed, let version = interopVersion.interopVersion else { return [:] }
        return [.uploadDraftInteropVersion: String(version)]
    }

    func stateFields(isComplete: Bool, offset: Int64? = nil) -> HTTPFields {
        var fields = versionFields
        let name = interopVersion.isInverted ? HTTPField.Name.uploadIncomplete : .uploadComplete
        fields[name] = interopVersion.value(isComplete: isComplete)
        if let offset { fields[.uploadOffset] = String(offset) }
        return fields
    }

    /// `Upload-Limit`, if the version has this field.
    ///
    /// - Parameter seconds: Remaining lifetime of the upload; nil omits it.
    func limitFields(maxSize: Int64, lifetime seconds: Int64?) -> HTTPFields {
        guard interopVersion.hasLengthAndLimits else { return [:] }
        // Integers of structured fields have at most 15 digits.
        var limits = ["max-size=\(min(maxSize, 999_999_999_999_999))"]
        if let seconds { limits.append("\(interopVersion.lifetimeLimit)=\(seconds)") }
        return [.uploadLimit: limits.joined(separator: ", ")]
    }
}

extension HTTPFields {
    /// Sets the other fields, replacing fields with the same names.
    mutating func set(_ others: HTTPFields) {
        for field in others { self[field.name] = field.value }
    }
}
