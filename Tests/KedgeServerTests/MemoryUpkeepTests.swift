import KedgeServer
import Testing

@Suite struct `Giving memory back` {
    @Test func `few connections are not worth it`() {
        var upkeep = MemoryUpkeep()
        #expect(!(0..<1000).contains { _ in upkeep.passed(closed: 0) })
        #expect(!(0..<63).contains { _ in upkeep.passed(closed: 1) })
    }

    @Test func `many connections are followed by a minute of it and not more`() {
        var upkeep = MemoryUpkeep()
        var times = 0
        for second in 0..<1000 where upkeep.passed(closed: second == 0 ? 2000 : 0) {
            times += 1
            #expect(second <= 70)
        }
        #expect(times == 7)
    }

    @Test func `a steady coming and going pays for it once in ten seconds`() {
        var upkeep = MemoryUpkeep()
        #expect((0..<1000).count { _ in upkeep.passed(closed: 500) } == 100)
    }
}
