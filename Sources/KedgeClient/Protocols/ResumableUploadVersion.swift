internal import KedgeModel

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

/// The field `Upload-Limit`: a dictionary of integers (RFC 9651, section 3.2).
package enum UploadLimitField {
    /// Parses the limits that a client uses. As the draft requires, a member of a wrong type
    /// invalidates the whole field.
    package static func parse(_ value: String?) -> ServerCapabilities? {
        guard let value else { return nil }
        var capabilities = ServerCapabilities()
        for member in value.split(separator: ",") {
            let pair = member.split(separator: "=", maxSplits: 1)
            let key = pair.first.map { $0.filter { $0 != " " && $0 != "\t" } } ?? ""
            guard ["max-size", "max-append-size", "min-append-size"].contains(key) else { continue }
            guard pair.count == 2, let item = pair[1].split(separator: ";").first,
                let number = WireInteger.parse(item.filter { $0 != " " && $0 != "\t" })
            else { return nil }
            switch key {
            case "max-size": capabilities.maxSize = number
            case "max-append-size": capabilities.maxAppendSize = number
            default: capabilities.minAppendSize = number
            }
        }
        return capabilities
    }
}
