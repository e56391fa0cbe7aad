import KedgeServer
import Testing

struct DescriptorBudgetTests {
    private static func budget(_ descriptorCount: Int, writes: Int = 64) -> DescriptorBudget {
        DescriptorBudget(descriptorCount: descriptorCount, writeCount: writes)
    }

    @Test(arguments: [(1 << 20, 10_000), (65_536, 10_000), (1024, 202), (256, 32), (100, 6)])
    func `the default number of connections leaves descriptors for a download on each`(
        descriptorCount: Int, connectionCount: Int
    ) throws {
        let budget = Self.budget(descriptorCount)
        #expect(try budget.connectionCount(asked: nil) == connectionCount)
        #expect(3 * connectionCount <= budget.largestConnectionCount)
    }

    @Test(arguments: [0, 1, 20, 64])
    func `too few descriptors for any connection are refused`(descriptorCount: Int) {
        #expect(throws: ConfigurationError.self) {
            try Self.budget(descriptorCount).connectionCount(asked: nil)
        }
    }

    @Test func `a connection limit above the budget is refused with both numbers`() throws {
        let budget = Self.budget(1024)
        let largest = budget.largestConnectionCount
        #expect(largest < 1024)
        #expect(try budget.connectionCount(asked: largest) == largest)
        let error = #expect(throws: ConfigurationError.self) {
            try budget.connectionCount(asked: largest + 1)
        }
        #expect(error?.description.contains("\(largest)") == true)
        #expect(error?.description.contains("1024") == true)
    }

    @Test(arguments: [64, 10_000])
    func `writes leave nearly half of the descriptors to connections`(writes: Int) {
        for count in stride(from: 0, to: 5000, by: 7) {
            let budget = Self.budget(count, writes: writes)
            #expect(budget.largestConnectionCount >= count / 2 - 32)
            #expect(budget.largestConnectionCount <= count)
        }
    }
}
