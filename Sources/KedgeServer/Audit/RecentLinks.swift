internal import KedgeLocks

/// The links through which a file was read last, up to a number.
package final class RecentLinks: Sendable {
    private struct State {
        var links: Set<String> = []
        /// The links in the order of their addition. When it is full, the oldest one gives its
        /// place to the next.
        var order: [String] = []
        var oldest = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    package init(limit: Int) {
        precondition(limit > 0, "recent links have room for one")
        self.limit = limit
    }

    /// Adds the id of a link and forgets the oldest one if there is no room.
    ///
    /// - Returns: Whether the link is new.
    package func insert(_ link: String) -> Bool {
        state.withLock { state in
            guard state.links.insert(link).inserted else { return false }
            guard state.order.count == limit else {
                state.order.append(link)
                return true
            }
            state.links.remove(state.order[state.oldest])
            state.order[state.oldest] = link
            state.oldest = (state.oldest + 1) % limit
            return true
        }
    }
}
