/// Version of draft-ietf-httpbis-resumable-upload by its interop number, with the differences that
/// matter to a client. Nil for the form without a number.
package struct ResumableUploadVersion: Sendable, Equatable {
    let interop: Int?

    package init(
        interop: Int?
    ) {
        self.interop = interop
    }

    /// Versions to try, in this order. The form without a number is last: a server without the
    /// protocol would make a file of the first part.
    package static let candidates =
        [9, 8, 7, 6, 5, 4, 3].map { ResumableUploadVersion(interop: $0) }
        + [ResumableUploadVersion(interop: nil)]

    /// Draft 01 transmits the opposite of completeness.
    var isInverted: Bool { interop == 3 }

    /// Field that states whether the body completes the upload.
    package var completenessField: String { isInverted ? "Upload-Incomplete" : "Upload-Complete" }

    /// Returns the value of ``completenessField``.
    package func value(isComplete: Bool) -> String { isComplete == isInverted ? "?0" : "?1" }

    /// Parses ``completenessField``; nil unless it is a boolean (RFC 9651, section 4.2.8).
    package func isComplete(_ value: String?) -> Bool? {
        switch value?.split(separator: ";").first?.filter({ $0 != " " && $0 != "\t" }) {
        case "?1": !isInverted
        case "?0": isInverted
        default: nil
        }
    }

    /// Media type of an append. Before draft 04, any type is allowed.
    package var appendMediaType: String {
        interop.map { $0 < 6 } == true ? "application/octet-stream" : "application/partial-upload"
    }

    /// Whether `Upload-Length` exists.
    package var hasLength: Bool { interop.map { $0 >= 6 } ?? true }
}
