import Testing

@testable import KedgeCurl

struct DurationTests {
    @Test(arguments: [
        (Duration.zero, 0), (.nanoseconds(1), 1), (.milliseconds(1500), 1500), (.seconds(-1), 0),
        (.seconds(Int64.max), Int(Int32.max)),
    ])
    func `waits are rounded up to milliseconds`(_ duration: Duration, _ milliseconds: Int) {
        #expect(duration.wholeMilliseconds == milliseconds)
    }
}
