package import KedgeModel

/// A reason why a JSON Web Token is refused.
package enum BearerRefusal: Error, Hashable, CaseIterable, Sendable {
    /// The text has another form, or a claim has a value of a wrong type.
    case malformed
    case tooLong
    /// The algorithm is not on the list, or the key is for another one.
    case algorithmNotAccepted
    /// The header names keys, extensions or a kind of token that the service does not support.
    case headerNotAccepted
    case unknownIssuer
    case unknownKey
    case wrongSignature
    case wrongAudience
    case withoutExpiry
    case expired
    case notYetValid
    /// The claims name no owner, or one that they must not name.
    case withoutOwner
    /// The keys of the issuer could not be fetched, or not for too long a time.
    case unavailable

    package var code: ErrorCode { self == .unavailable ? .unavailable : .unauthenticated }

    /// A sentence for people, safe to show to any client.
    package var sentence: String {
        switch self {
        case .malformed: "The text after Bearer is no valid JSON Web Token."
        case .tooLong: "The JSON Web Token is too long."
        case .algorithmNotAccepted: "The service does not accept the algorithm of the token."
        case .headerNotAccepted: "The service does not accept a member of the token's header."
        case .unknownIssuer: "The service does not accept tokens of this issuer."
        case .unknownKey: "The issuer does not list the key of the token."
        case .wrongSignature: "The signature of the token is wrong."
        case .wrongAudience: "The token is for another audience."
        case .withoutExpiry: "The token has no time of expiry."
        case .expired: "The token has expired."
        case .notYetValid: "The token is not valid yet."
        case .withoutOwner: "The token names no owner that the service accepts."
        case .unavailable: "The keys of the token's issuer cannot be fetched; try again."
        }
    }
}
