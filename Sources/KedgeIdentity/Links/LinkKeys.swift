internal import KedgeModel

/// The keys of a service for links. A key that was revoked is not among them.
package struct LinkKeys: Sendable {
    private let keys: [String: LinkKey]

    package init(_ keys: [LinkKey]) {
        self.keys = Dictionary(keys.map { ($0.id, $0) }) { first, _ in first }
    }

    /// The key of this id; nil if it is unknown.
    subscript(id: String) -> LinkKey? { keys[id] }

    /// Returns the newest key that signs; nil if there is none.
    func signing(at now: Timestamp) -> LinkKey? {
        keys.values.filter { $0.signs(at: now) }
            .max { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
    }
}
