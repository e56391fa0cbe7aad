internal import KedgeLocks
package import KedgeModel

/// The closure that gets each session that this node has turned into a file; none at first.
///
/// The closure is in a struct. A function that is itself the value of a `Mutex` would be converted
/// to the generic calling convention and back at each access, and every access adds two thunks to
/// it: call n then runs through 2n of them, and at some hundred thousand the stack ends.
package final class CompletionObserver: Sendable {
    private struct Observer {
        let notify: @Sendable (SessionID, OwnerID) -> Void
    }

    private let observer = Mutex<Observer?>(nil)

    package init() {}

    package func set(_ notify: @escaping @Sendable (SessionID, OwnerID) -> Void) {
        observer.withLock { $0 = Observer(notify: notify) }
    }

    package func notify(_ session: SessionID, _ owner: OwnerID) {
        observer.withLock { $0 }?.notify(session, owner)
    }
}
