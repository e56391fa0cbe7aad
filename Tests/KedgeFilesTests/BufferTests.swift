import KedgeFiles
import Testing

struct BufferTests {
    private let pool = BufferPool(bufferCapacity: 8, keptCount: 2)

    private func append(_ bytes: [UInt8], to buffer: IOBuffer, limit: Int = .max) -> Int {
        bytes.withUnsafeBytes { buffer.append($0, limit: limit) }
    }

    @Test func `a buffer gathers bytes in order until it is full`() {
        let buffer = pool.take()
        #expect(buffer.capacity == 8)
        #expect(append([1, 2, 3], to: buffer) == 3)
        #expect(append([4, 5, 6], to: buffer, limit: 2) == 2)
        #expect(buffer.freeCount == 3)
        #expect(append([6, 7, 8, 9, 10], to: buffer) == 3)
        #expect(append([9], to: buffer) == 0)
        #expect(Array(buffer.bytes) == [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(buffer.count == 8)
    }

    @Test(arguments: [0, -1, Int.min])
    func `a buffer takes no bytes under a limit of zero or less`(limit: Int) {
        let buffer = pool.take()
        #expect(append([1], to: buffer, limit: limit) == 0)
        #expect(append([], to: buffer) == 0)
        #expect(buffer.count == 0)
    }

    @Test func `a buffer counts the bytes that were filled into its free part`() {
        struct Failure: Error {}
        let buffer = pool.take()
        #expect(append([1, 2], to: buffer) == 2)
        buffer.fillFree(limit: 3) { memory in
            #expect(memory.count == 3)
            memory[0] = 7
            return 1
        }
        #expect(Array(buffer.bytes) == [1, 2, 7])
        #expect(throws: Failure.self) {
            try buffer.fillFree { (memory) throws(Failure) -> Int in
                #expect(memory.count == 5)
                throw Failure()
            }
        }
        #expect(buffer.count == 3)
    }

    @Test func `a buffer that lends its memory holds no bytes`() {
        let buffer = pool.take()
        #expect(append([1, 2], to: buffer) == 2)
        buffer.withMemory { memory in
            #expect(memory.count == 8)
        }
        #expect(buffer.count == 0)
    }

    @Test func `a returned buffer is reused, empty`() {
        let first = pool.take()
        #expect(append([1, 2, 3], to: first) == 3)
        pool.give(first)
        let again = pool.take()
        #expect(again === first)
        #expect(again.count == 0)
    }

    @Test func `a buffer is lent to one user at a time`() {
        let taken = (0..<5).map { _ in pool.take() }
        #expect(Set(taken.map { ObjectIdentifier($0) }).count == 5)
    }

    /// R125: unused memory is bounded.
    @Test func `the pool keeps no more buffers than its bound`() {
        let taken = (0..<5).map { _ in pool.take() }
        for buffer in taken { pool.give(buffer) }
        let old = Set(taken.map { ObjectIdentifier($0) })
        let reused = (0..<5).map { _ in pool.take() }.filter { old.contains(ObjectIdentifier($0)) }
        #expect(reused.count == 2)
        // Otherwise an optimized build frees these earlier, and new ones get their addresses.
        withExtendedLifetime(taken) {}
    }

    /// R125: memory is bounded, however many streams there are.
    @Test func `buffers get smaller as the budget is lent, and large again after their return`() {
        let pool = BufferPool(bufferCapacity: 64, minCapacity: 8, budget: 512)
        let taken = (0..<40).map { _ in pool.take() }
        let capacities = taken.map(\.capacity)
        #expect(capacities.first == 64)
        #expect(capacities == capacities.sorted(by: >))
        #expect(capacities.last == 8)
        // All buffers but the smallest are within the budget.
        #expect(capacities.filter { $0 > 8 }.reduce(0, +) <= 512)
        for buffer in taken { pool.give(buffer) }
        #expect(pool.take().capacity == 64)
    }

    @Test func `a buffer is not much larger than the bytes that it is for`() {
        let pool = BufferPool(bufferCapacity: 64, minCapacity: 8, budget: 512)
        #expect(pool.take(for: 9).capacity == 16)
        #expect(pool.take(for: 16).capacity == 16)
        #expect(pool.take(for: 1).capacity == 8)
    }
}
