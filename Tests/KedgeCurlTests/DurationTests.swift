import KedgeCurl
import Testing

struct DurationTests {
    @Test(arguments: [
        (Duration.zero, 0), (.nanoseconds(1), 1), (.milliseconds(1500), 1500), (.seconds(-1), 0),
        (.seconds(Int64.max), Int(Int32.max)),
    ])
    func `a duration is rounded up to whole milliseconds`(_ duration: Duration, _ milliseconds: Int)
    {
        #expect(duration.wholeMilliseconds == milliseconds)
    }
}
