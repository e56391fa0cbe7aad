package import KedgeModel

/// A limit of a `put` link that an upload breaks. The raw value is stable.
package enum LinkViolation: String, Error, CaseIterable, Sendable {
    case tooLarge
    case tooSmall
    case wrongSize
    case wrongMediaType
    case wrongName
    case wrongExtension
    case wrongDigest

    package var code: ErrorCode { self == .tooLarge ? .fileTooLarge : .forbidden }

    /// A sentence for people, safe to show to any client.
    package var sentence: String {
        switch self {
        case .tooLarge: "The file is larger than the link permits."
        case .tooSmall: "The file is smaller than the link permits."
        case .wrongSize: "The link is for a file of another size."
        case .wrongMediaType: "The link does not permit this media type."
        case .wrongName: "The link is for a file with another name."
        case .wrongExtension: "The link does not permit this file name extension."
        case .wrongDigest: "The link is for a file with another SHA-256."
        }
    }
}
