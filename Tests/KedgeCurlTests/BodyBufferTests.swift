import KedgeCurl
import Testing

struct BodyBufferTests {
    private let half = [UInt8](repeating: 0, count: BodyBuffer.highWaterByteCount / 2)

    @Test func `a body buffer pauses when full and resumes when nearly empty`() {
        var buffer = BodyBuffer()
        buffer.append(half)
        let pausesEarly = buffer.pauseIfFull()
        buffer.append(half)
        let pausesWhenFull = buffer.pauseIfFull()
        #expect(!pausesEarly)
        #expect(pausesWhenFull)
        let taken = [buffer.takeFirst(), buffer.takeFirst(), buffer.takeFirst()]
        #expect(taken.map { $0?.mustResume } == [false, true, nil])
        #expect(!buffer.isPaused)
    }

    @Test func `a transfer that was never paused is not resumed`() {
        var buffer = BodyBuffer()
        buffer.append(half)
        let taken = buffer.takeFirst()
        #expect(taken?.mustResume == false)
    }
}
