import KedgeSecrets
import Testing

struct SecureRandomTests {
    @Test(arguments: [0, 1, 7, 8, 9, 32, 100])
    func `there are as many bytes as were asked for`(count: Int) {
        #expect(SecureRandom.bytes(count).count == count)
    }

    @Test func `random bytes are distinct and use every bit`() {
        let values = (0..<1000).map { _ in SecureRandom.bytes(32) }
        #expect(Set(values).count == values.count)
        let everOne = (0..<32).map { place in values.reduce(0) { $0 | $1[place] } }
        let everZero = (0..<32).map { place in values.reduce(0) { $0 | ~$1[place] } }
        #expect(everOne == [UInt8](repeating: 255, count: 32))
        #expect(everZero == [UInt8](repeating: 255, count: 32))
    }
}
