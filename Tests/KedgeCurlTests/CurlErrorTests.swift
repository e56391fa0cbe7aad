import KedgeCurl
import Testing

struct CurlErrorTests {
    @Test func `curl errors are equal when their codes are`() {
        let here = CurlError(.stalled, for: .init(operation: "GET", host: "a"), detail: "one")
        let there = CurlError(.stalled, for: .init(operation: "PUT", host: "b"), detail: "two")
        let other = CurlError(.timedOut, for: .init(operation: "GET", host: "a"), detail: "one")
        #expect(here == there)
        #expect(here != other)
    }
}
