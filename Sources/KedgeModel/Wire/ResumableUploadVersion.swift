/// A version of draft-ietf-httpbis-resumable-upload, by its interop number, or the form without
/// one.
///
/// All differences between the versions are defined here.
package enum ResumableUploadVersion: Int64, CaseIterable, Comparable, Sendable {
    /// Draft 01.
    case interop3 = 3
    /// Draft 02.
    case interop4
    /// Draft 03.
    case interop5
    /// Drafts 04 and 05.
    case interop6
    /// Drafts 06 to 08.
    case interop7
    /// Drafts 09 to 11.
    case interop8
    /// Draft 12.
    case interop9
    /// The form without a number, as the draft announces it for the RFC.
    case final

    /// The versions that a client tries, in this order. The form without a number is last: a server
    /// without the protocol would make a file of the first part.
    package static let candidates: [Self] =
        allCases.filter { $0 != .final }.sorted(by: >) + [.final]

    /// Creates the version with an interop number; nil for numbers that are not supported.
    package init?(interopVersion: Int64) {
        guard let interopVersion = Self(rawValue: interopVersion), interopVersion != .final else {
            return nil
        }
        self = interopVersion
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The value of `Upload-Draft-Interop-Version`; nil for the form without it.
    package var interopVersion: Int64? { self == .final ? nil : rawValue }

    /// Whether completeness is expressed by its opposite, `Upload-Incomplete`.
    package var isInverted: Bool { self == .interop3 }

    /// The field that states whether the body completes the upload.
    package var completenessField: String { isInverted ? "Upload-Incomplete" : "Upload-Complete" }

    /// Returns the value of ``completenessField``.
    package func value(isComplete: Bool) -> String { isComplete == isInverted ? "?0" : "?1" }

    /// Parses ``completenessField``; nil unless it is a Boolean.
    package func isComplete(_ value: String?) -> Bool? {
        value.flatMap { StructuredField.boolean($0, acceptsEveryType: true) }
            .map { $0 != isInverted }
    }

    /// The media type that an append must have; nil when any is accepted.
    package var requiredAppendMediaType: String? {
        self >= .interop6 ? "application/partial-upload" : nil
    }

    /// The media type that a client sends with an append.
    package var appendMediaType: String { requiredAppendMediaType ?? "application/octet-stream" }

    /// Status of an append that does not complete the upload.
    package var incompleteAppendStatus: Int { self >= .interop6 ? 204 : 201 }

    /// Whether `Upload-Length` and `Upload-Limit` exist.
    package var hasLengthAndLimits: Bool { self >= .interop6 }

    /// The member of `Upload-Limit` with the remaining seconds of the upload.
    package var lifetimeLimit: String { self == .interop6 ? "expires" : "max-age" }

    /// Whether a 104 may announce the address. A draft server must not send one to a client that
    /// names no version: the client may implement the RFC, whose rules may differ.
    package var announcesUploads: Bool { self != .final }

    /// Whether further 104 responses report the progress. They are optional since version 5, but
    /// existing clients of versions 5 and 6 have never received one.
    package var reportsProgress: Bool { announcesUploads && self >= .interop7 }

    /// Whether bytes beyond the declared length end the upload, not only the request.
    package var endsUploadBeyondLength: Bool { self >= .interop7 }

    /// The URI of the problem type; nil when this version does not define it.
    package func problemType(_ problem: ResumableUploadProblemType) -> String? {
        let exists =
            switch problem {
            case .mismatchingOffset: self >= .interop6
            case .inconsistentLength: self >= .interop7
            case .completedUpload: (Self.interop6...Self.interop8).contains(self)
            }
        return exists ? "https://iana.org/assignments/http-problem-types#\(problem.rawValue)" : nil
    }
}

/// Problem types that the drafts define.
package enum ResumableUploadProblemType: String, CaseIterable, Sendable {
    case mismatchingOffset = "mismatching-upload-offset"
    case inconsistentLength = "inconsistent-upload-length"
    case completedUpload = "completed-upload"

    /// A summary for people.
    package var title: String {
        switch self {
        case .mismatchingOffset: "offset from request does not match offset of resource"
        case .inconsistentLength: "inconsistent length values for upload"
        case .completedUpload: "upload is already completed"
        }
    }
}
