import KedgeSecrets
import Testing

/// Only the results. The time is measured by the benchmarks.
struct ConstantTimeTests {
    @Test func `equal bytes are equal`() {
        #expect(ConstantTime.areEqual([], []))
        #expect(ConstantTime.areEqual([0], [0]))
        #expect(ConstantTime.areEqual(Array(0...255), Array(0...255)))
    }

    @Test func `a difference in any bit counts`() {
        let bytes = [UInt8](repeating: 0x5A, count: 32)
        for place in bytes.indices {
            for bit in 0..<8 {
                var other = bytes
                other[place] ^= 1 << bit
                #expect(!ConstantTime.areEqual(bytes, other))
            }
        }
    }

    @Test func `bytes and their prefix are not equal`() {
        #expect(!ConstantTime.areEqual([1, 2, 3], [1, 2]))
        #expect(!ConstantTime.areEqual([], [0]))
        #expect(!ConstantTime.areEqual([0], []))
    }
}
