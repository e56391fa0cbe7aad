package import KedgeModel

/// A change after which rows that a node has read before are no longer valid.
package enum IdentityChange: Hashable, Sendable {
    /// A token was revoked.
    case token(TokenID)
    /// An owner was blocked or unblocked.
    case owner(OwnerID)
}

extension IdentityChange {
    private static let tokenPrefix = "token "
    private static let ownerPrefix = "owner "

    /// The text in which nodes send the change to each other.
    package var text: String {
        switch self {
        case .token(let id): Self.tokenPrefix + id.text
        case .owner(let owner): Self.ownerPrefix + owner.text
        }
    }

    /// Parses the text of another node; nil for a change that only a later version knows.
    package init?(text: String) {
        if text.hasPrefix(Self.tokenPrefix),
            let id = TokenID(text.dropFirst(Self.tokenPrefix.count))
        {
            self = .token(id)
        } else if text.hasPrefix(Self.ownerPrefix),
            let owner = OwnerID(checking: text.dropFirst(Self.ownerPrefix.count))
        {
            self = .owner(owner)
        } else {
            return nil
        }
    }
}
