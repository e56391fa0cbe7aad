import KedgeClient
import KedgeModel
import KedgeTesting
import Testing

struct RetryPolicyTests {
    @Test(arguments: (0..<20).map { _ in UInt64.random(in: 0...(.max)) })
    func `a wait lies between zero and a bound that doubles up to the cap`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let policy = RetryPolicy()
        for failureCount in 1...40 {
            let delay = policy.delay(
                afterFailures: failureCount, retryAfter: nil, using: &generator)
            let bound = policy.bound(afterFailures: failureCount)
            #expect(delay >= .zero && delay <= bound, "seed \(seed), failure \(failureCount)")
            #expect(bound <= policy.maxDelay, "seed \(seed), failure \(failureCount)")
            let next = policy.bound(afterFailures: failureCount + 1)
            #expect(next == min(bound * 2, policy.maxDelay), "seed \(seed)")
            let phase = Double.random(in: 0...1, using: &generator)
            let shifted = policy.bound(afterFailures: failureCount, phase: phase)
            #expect(shifted <= bound && shifted >= bound / 2.01, "seed \(seed)")
        }
    }

    @Test(arguments: (0..<20).map { _ in UInt64.random(in: 0...(.max)) })
    func `a Retry-After is the shortest wait and is capped at the longest honoured one`(
        seed: UInt64
    ) {
        var generator = SplitMix64(seed: seed)
        let policy = RetryPolicy()
        let short = policy.delay(afterFailures: 1, retryAfter: .seconds(7), using: &generator)
        #expect(short >= .seconds(7) && short <= .seconds(8.75), "seed \(seed)")
        let long = policy.delay(afterFailures: 9, retryAfter: .seconds(90_000), using: &generator)
        #expect(long <= policy.maxRetryAfter * 5 / 4, "seed \(seed)")
    }

    @Test func `the retry budget counts only attempts without progress`() {
        var policy = RetryPolicy()
        policy.chunkBudget = 3
        policy.transferBudget = 5
        var budget = RetryBudget(policy: policy)
        for _ in 0..<10 {
            _ = budget.recordFailure(chunk: 1)
            _ = budget.recordFailure(chunk: 1)
            #expect(!budget.isExhausted(chunk: 1))
            budget.recordProgress(chunk: 1)
        }
        for _ in 0..<3 { _ = budget.recordFailure(chunk: 2) }
        #expect(budget.isExhausted(chunk: 2))
        #expect(!budget.isExhausted(chunk: 1))
    }

    @Test func `many chunks that each fail once exhaust the transfer's retry budget`() {
        var policy = RetryPolicy()
        policy.transferBudget = 5
        var budget = RetryBudget(policy: policy)
        for chunk in 0..<5 { _ = budget.recordFailure(chunk: chunk) }
        #expect(budget.isExhausted(chunk: 9))
        // An answer that moves no byte is no progress.
        budget.recordProgress(chunk: nil)
        #expect(budget.isExhausted(chunk: 9))
        budget.recordProgress(chunk: 3)
        #expect(!budget.isExhausted(chunk: 9))
    }

    @Test(arguments: [
        ("12", Duration.seconds(12)), ("999999999", .seconds(86_400)),
        ("Thu, 01 Jan 1970 00:01:40 GMT", .seconds(100)),
    ])
    func `Retry-After is read as seconds and as a date`(value: String, wait: Duration) {
        let now = Timestamp(millisecondsSinceEpoch: 0)
        #expect(RetryAfter.parse(value, now: now) == wait)
    }

    @Test(arguments: ["", "-1", "soon", "S\u{301}un", "Thu, 01 Jan 1970 00:00:00 GMT"])
    func `a Retry-After that says nothing useful is ignored`(value: String) {
        #expect(RetryAfter.parse(value, now: Timestamp(millisecondsSinceEpoch: 1)) == nil)
    }
}

struct ConcurrencyWindowTests {
    // R126.
    @Test func `the concurrency window is four unless another one is set, and grows back to it`() {
        for (wish, limit) in [(nil, 4), (1, 1), (3, 3), (12, 12)] {
            var window = ConcurrencyWindow(
                wish: wish, serverLimit: nil, bufferByteCount: 1 << 20, budgetByteCount: 24 << 20)
            #expect(window.limit == limit)
            window.recordCongestion()
            for _ in 0..<1000 { window.recordSuccess() }
            #expect(window.limit == limit)
        }
    }

    @Test func `congestion halves the window down to one`() {
        var window = ConcurrencyWindow(
            wish: nil, serverLimit: nil, bufferByteCount: 1, budgetByteCount: 100)
        let limits = (0..<4).map { _ in
            window.recordCongestion()
            return window.limit
        }
        #expect(limits == [2, 1, 1, 1])
    }

    @Test(arguments: [(2, Int64(1), 2), (100, 8 << 20, 3), (0, 1, 1), (100, 1 << 40, 1)])
    func `the server's limit and the memory cap the window`(
        serverLimit: Int, buffer: Int64, expected: Int
    ) {
        var window = ConcurrencyWindow(
            wish: nil, serverLimit: serverLimit, bufferByteCount: buffer, budgetByteCount: 24 << 20)
        for _ in 0..<100 { window.recordSuccess() }
        #expect(window.limit == expected)
    }
}
