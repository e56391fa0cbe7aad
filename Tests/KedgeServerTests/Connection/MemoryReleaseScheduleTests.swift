import KedgeServer
import Testing

struct MemoryReleaseScheduleTests {
    @Test func `a few closed connections do not trigger a release of memory`() {
        var schedule = MemoryReleaseSchedule()
        #expect(!(0..<1000).contains { _ in schedule.passed(closed: 0) })
        #expect(!(0..<63).contains { _ in schedule.passed(closed: 1) })
    }

    @Test func `many closed connections trigger releases of memory for about a minute`() {
        var schedule = MemoryReleaseSchedule()
        var times = 0
        for second in 0..<1000 where schedule.passed(closed: second == 0 ? 2000 : 0) {
            times += 1
            #expect(second <= 70)
        }
        #expect(times == 7)
    }

    @Test func `steady traffic triggers a release of memory every ten seconds`() {
        var schedule = MemoryReleaseSchedule()
        #expect((0..<1000).count { _ in schedule.passed(closed: 500) } == 100)
    }
}
