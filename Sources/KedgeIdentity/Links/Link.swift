package import KedgeModel

/// A permission that stands in a URL: everything that its signed text says.
package struct Link: Hashable, Sendable {
    package let id: LinkID
    /// The owner for whom requests with the link act.
    package let owner: OwnerID
    package let grant: LinkGrant
    /// The first moment at which the link is valid; nil if it is from the start.
    package let notBefore: Timestamp?
    /// The first moment at which the link is no longer valid.
    package let expiresAt: Timestamp
    /// The token or principal that made the link. A revoked token invalidates its links.
    package let createdBy: String?

    /// Makes a link. Its text counts whole seconds, so both times are cut to them.
    ///
    /// - Parameter id: The identifier; nil for a new one.
    package init(
        id: LinkID? = nil, owner: OwnerID, grant: LinkGrant, expiresAt: Timestamp,
        notBefore: Timestamp? = nil, createdBy: String? = nil
    ) {
        self.id = id ?? .random(of: owner)
        self.owner = owner
        self.grant = grant
        self.notBefore = notBefore.map(Self.wholeSeconds)
        self.expiresAt = Self.wholeSeconds(expiresAt)
        self.createdBy = createdBy
    }

    package var kind: LinkKind {
        switch grant {
        case .put: .put
        case .session: .session
        case .get: .get
        }
    }

    /// Origins of pages that may use the link; empty for pages of the service alone.
    package var origins: [String] {
        switch grant {
        case .put(let constraints): constraints.origins
        case .session(let linked): linked.origins
        case .get(let linked): linked.origins
        }
    }

    /// Networks from which the link may be used; empty for all.
    package var networks: [String] {
        switch grant {
        case .put(let constraints): constraints.networks
        case .session(let linked): linked.networks
        case .get(let linked): linked.networks
        }
    }

    private static func wholeSeconds(_ time: Timestamp) -> Timestamp {
        Timestamp(millisecondsSinceEpoch: time.millisecondsSinceEpoch / 1000 * 1000)
    }
}

/// A kind of link, by the operations that it permits.
package enum LinkKind: String, CaseIterable, Codable, Sendable {
    /// Creates an upload.
    case put
    /// Continues one session, and asks for its status.
    case session
    /// Reads one file.
    case get
}

/// The permission of a link, with its object and limits.
package enum LinkGrant: Hashable, Sendable {
    case put(LinkConstraints)
    case session(LinkedSession)
    case get(LinkedFile)
}
