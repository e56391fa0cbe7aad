internal import KedgeLocks

/// A value that several tasks and threads change.
package final class Shared<Value: Sendable>: Sendable {
    private let storage: Mutex<Value>

    package init(_ value: Value) { storage = Mutex(value) }

    package var value: Value { storage.withLock { $0 } }

    package func update<Result: Sendable>(_ change: @Sendable (inout Value) -> Result) -> Result {
        storage.withLock { change(&$0) }
    }
}

extension Shared<Int> {
    /// Adds one and returns the sum.
    package func increment() -> Int {
        update {
            $0 += 1
            return $0
        }
    }
}
