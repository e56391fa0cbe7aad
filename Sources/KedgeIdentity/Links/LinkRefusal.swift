package import KedgeModel

/// A reason why the text of a link is refused.
package enum LinkRefusal: Error, Hashable, CaseIterable, Sendable {
    /// The text is no link, has another signature, or says something that this version does not
    /// know.
    case invalid
    case expired
    case notYetValid

    package var code: ErrorCode {
        switch self {
        case .invalid, .notYetValid: .linkInvalid
        case .expired: .linkExpired
        }
    }

    /// A sentence for people, safe to show to any client.
    package var sentence: String {
        switch self {
        case .invalid, .expired: code.facts.sentence
        case .notYetValid: "The link is not valid yet."
        }
    }
}
