/// A version of draft-ietf-httpbis-resumable-upload, by its interop number, or the form without one.
///
/// The one place that knows what the versions do differently.
package enum ResumableUploadDialect: Int64, CaseIterable, Comparable, Sendable {
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
    /// What remains when the number goes, as the draft says it will in the RFC.
    case final

    /// The dialect of an interop number; nil for numbers that are not spoken here.
    package init?(interopVersion: Int64) {
        guard let dialect = Self(rawValue: interopVersion), dialect != .final else { return nil }
        self = dialect
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The value of `Upload-Draft-Interop-Version`; nil for the form without it.
    package var interopVersion: Int64? { self == .final ? nil : rawValue }

    /// True when completeness is told by its opposite, in `Upload-Incomplete`.
    package var isInverted: Bool { self == .interop3 }

    /// The media type that an append must have; nil when it may have any.
    package var appendMediaType: String? {
        self >= .interop6 ? "application/partial-upload" : nil
    }

    /// Status of an append after which more is to come.
    package var incompleteAppendStatus: Int { self >= .interop6 ? 204 : 201 }

    /// True when `Upload-Length` and `Upload-Limit` exist.
    package var hasLengthAndLimits: Bool { self >= .interop6 }

    /// The member of `Upload-Limit` with the seconds that the upload has left.
    package var lifetimeLimit: String { self == .interop6 ? "expires" : "max-age" }

    /// True when a 104 may tell the address. A server of drafts must not send one to who names no
    /// version, so that it does not speak by accident to clients of the RFC, whose rules may be others.
    package var announcesUploads: Bool { self != .final }

    /// True when further 104 tell how far the upload has come. Drafts have them since version 5, but
    /// leave them to the server, and the clients of 5 and 6 in the field have never met one.
    package var reportsProgress: Bool { announcesUploads && self >= .interop7 }

    /// True when bytes beyond the declared length end the upload, not just the request.
    package var endsUploadBeyondLength: Bool { self >= .interop7 }

    /// The registered name of what went wrong; nil when this version has no name for it.
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

    /// A sentence for a person.
    package var title: String {
        switch self {
        case .mismatchingOffset: "offset from request does not match offset of resource"
        case .inconsistentLength: "inconsistent length values for upload"
        case .completedUpload: "upload is already completed"
        }
    }
}
