import Testing

@testable import KedgeCurl

struct CurlErrorTests {
    @Test func `errors are equal when their codes are`() {
        let here = CurlError(.stalled, for: .init(operation: "GET", host: "a"), detail: "one")
        let there = CurlError(.stalled, for: .init(operation: "PUT", host: "b"), detail: "two")
        let other = CurlError(.timedOut, for: .init(operation: "GET", host: "a"), detail: "one")
        #expect(here == there)
        #expect(here != other)
    }
}
