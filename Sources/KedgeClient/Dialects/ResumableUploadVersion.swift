internal import KedgeModel

/// A version of draft-ietf-httpbis-resumable-upload by its interop number, nil for the form without one:
/// what it does differently, as far as a client meets it.
struct ResumableUploadVersion: Sendable, Equatable {
    let interop: Int?

    /// What is tried, in this order. The form without a version is last: a server that knows nothing of
    /// this protocol would make a file of the first part.
    static let candidates =
        [9, 8, 7, 6, 5, 4, 3].map { ResumableUploadVersion(interop: $0) }
        + [ResumableUploadVersion(interop: nil)]

    /// Draft 01 tells completeness by its opposite.
    var isInverted: Bool { interop == 3 }

    /// The field that tells whether the body ends the upload.
    var completenessField: String { isInverted ? "Upload-Incomplete" : "Upload-Complete" }

    /// The value of ``completenessField``.
    func value(isComplete: Bool) -> String { isComplete == isInverted ? "?0" : "?1" }

    /// Reads a value of ``completenessField``; nil for anything but a boolean (RFC 9651, section 4.2.8).
    func isComplete(_ value: String?) -> Bool? {
        switch value?.split(separator: ";").first?.filter({ $0 != " " && $0 != "\t" }) {
        case "?1": !isInverted
        case "?0": isInverted
        default: nil
        }
    }

    /// Media type of an append. Before draft 04 any will do.
    var appendMediaType: String {
        interop.map { $0 < 6 } == true ? "application/octet-stream" : "application/partial-upload"
    }

    /// True when `Upload-Length` exists.
    var hasLength: Bool { interop.map { $0 >= 6 } ?? true }
}

/// The field `Upload-Limit`: a dictionary of integers (RFC 9651, section 3.2).
enum UploadLimitField {
    /// Reads what a client acts on. A member that has another type voids the whole field, as the draft says.
    static func parse(_ value: String?) -> UploadOffer? {
        guard let value else { return nil }
        var offer = UploadOffer()
        for member in value.split(separator: ",") {
            let pair = member.split(separator: "=", maxSplits: 1)
            let key = pair.first.map { $0.filter { $0 != " " && $0 != "\t" } } ?? ""
            guard ["max-size", "max-append-size", "min-append-size"].contains(key) else { continue }
            guard pair.count == 2, let item = pair[1].split(separator: ";").first,
                let number = WireInteger.parse(item.filter { $0 != " " && $0 != "\t" })
            else { return nil }
            switch key {
            case "max-size": offer.maxSize = number
            case "max-append-size": offer.maxAppendSize = number
            default: offer.minAppendSize = number
            }
        }
        return offer
    }
}
