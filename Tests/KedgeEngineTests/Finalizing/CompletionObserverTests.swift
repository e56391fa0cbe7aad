import KedgeEngine
import KedgeLocks
import KedgeModel
import Testing

@Suite(.timeLimit(.minutes(1))) struct CompletionObserverTests {
    /// Each call once went through two more thunks than the one before it: at some hundred thousand
    /// files the stack ended, and with it the service.
    @Test func `a service finishes a million files with one observer`() {
        let count = Mutex(0)
        let observer = CompletionObserver()
        observer.set { _, _ in count.withLock { $0 += 1 } }
        let id = SessionID.random()
        for _ in 0..<1_000_000 { observer.notify(id, .anonymous) }
        #expect(count.withLock { $0 } == 1_000_000)
    }
}
