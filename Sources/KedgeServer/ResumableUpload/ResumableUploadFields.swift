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

/// What a request says in the fields of resumable uploads, and how to answer it.
///
/// A field that holds anything but what it may hold counts as absent, as the drafts demand.
struct ResumableUploadCall: Sendable {
    var dialect: ResumableUploadDialect
    /// True when the request names exactly this dialect; only then it may be sent a 104.
    let isVersionNamed: Bool
    /// Those of the request.
    let headers: HTTPFields

    init(_ headers: HTTPFields) {
        self.headers = headers
        let named = headers[.uploadDraftInteropVersion].flatMap(StructuredField.count)
            .flatMap(ResumableUploadDialect.init(interopVersion:))
        isVersionNamed = named != nil
        // Only version 3 has the inverted field: whoever sends it without a version means that one.
        let isInverted = headers[.uploadComplete] == nil && headers[.uploadIncomplete] != nil
        dialect = named ?? (isInverted ? .interop3 : .final)
    }

    /// Whether the upload ends with this request's body; nil when the request does not say.
    ///
    /// The field of another version says it as well, and who says in either that more is to come is believed: a
    /// part of a file must not become one.
    var completes: Bool? {
        let isComplete = headers[.uploadComplete].flatMap(StructuredField.boolean)
        let isIncomplete = headers[.uploadIncomplete].flatMap(StructuredField.boolean)
        let said = [isComplete, isIncomplete.map { !$0 }].compactMap(\.self)
        return said.isEmpty ? nil : !said.contains(false)
    }

    /// Where the body begins in the file.
    var offset: Int64? { headers[.uploadOffset].flatMap(StructuredField.count) }

    /// True when an upload is to be made for the request.
    ///
    /// A whole file from a client that names no version that is spoken here is a plain upload: nobody
    /// would learn the address of a resource made for it. A part of a file is none, for it would become a
    /// wrong file; neither is one that tells its length in the form without versions, which is held to it.
    var beginsUpload: Bool {
        let tellsLength =
            headers[.uploadDraftInteropVersion] == nil && dialect.hasLengthAndLimits
            && headers[.uploadLength] != nil
        return completes.map { isVersionNamed || tellsLength || !$0 } ?? false
    }

    /// The length of the whole file in `Upload-Length`, where the version has it.
    var declaredLength: Int64? {
        dialect.hasLengthAndLimits ? headers[.uploadLength].flatMap(StructuredField.count) : nil
    }

    /// The length of the whole file as far as this request tells, from `Upload-Length` and from a body
    /// that is the rest.
    ///
    /// - Throws: ``ResumableUploadRefusal/inconsistentLength`` when it contradicts itself.
    func length(offset: Int64, announced: Int64?) throws -> Int64? {
        let said = declaredLength
        guard let announced else { return said }
        let (end, isOverflowing) = offset.addingReportingOverflow(announced)
        guard !isOverflowing else { throw ResumableUploadRefusal.inconsistentLength }
        guard let said else { return completes == true ? end : nil }
        guard end == said || (completes != true && end < said) else {
            throw ResumableUploadRefusal.inconsistentLength
        }
        return said
    }

    // MARK: Fields of answers

    /// The version, when one was named.
    var versionFields: HTTPFields {
        guard isVersionNamed, let version = dialect.interopVersion else { return [:] }
        return [.uploadDraftInteropVersion: String(version)]
    }

    /// The state of an upload.
    func stateFields(isComplete: Bool, offset: Int64? = nil) -> HTTPFields {
        var fields = versionFields
        let name = dialect.isInverted ? HTTPField.Name.uploadIncomplete : .uploadComplete
        fields[name] = isComplete != dialect.isInverted ? "?1" : "?0"
        if let offset { fields[.uploadOffset] = String(offset) }
        return fields
    }

    /// `Upload-Limit`, where the version has it.
    ///
    /// - Parameter seconds: How long the upload has left; nil says nothing of it.
    func limitFields(maxSize: Int64, lifetime seconds: Int64?) -> HTTPFields {
        guard dialect.hasLengthAndLimits else { return [:] }
        // Integers of structured fields have at most 15 digits.
        var limits = ["max-size=\(min(maxSize, 999_999_999_999_999))"]
        if let seconds { limits.append("\(dialect.lifetimeLimit)=\(seconds)") }
        return [.uploadLimit: limits.joined(separator: ", ")]
    }
}

extension HTTPFields {
    /// Puts the other fields in the place of those with the same names.
    mutating func set(_ others: HTTPFields) {
        for field in others { self[field.name] = field.value }
    }
}
