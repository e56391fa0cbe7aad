import KedgeModel
import Testing

struct ClientAddressBytesTests {
    private static func version6(_ start: [UInt8], _ end: UInt8) -> [UInt8] {
        start + Array(repeating: 0, count: 15 - start.count) + [end]
    }

    @Test func `different IPv4 addresses are unequal`() {
        #expect(ClientAddress(bytes: [1, 2, 3, 4]) == ClientAddress(bytes: [1, 2, 3, 4]))
        #expect(ClientAddress(bytes: [1, 2, 3, 4]) != ClientAddress(bytes: [1, 2, 3, 5]))
    }

    @Test func `IPv6 addresses are equal when their first 64 bits are`() {
        let network: [UInt8] = [0x20, 1, 0xD, 0xB8, 0, 0, 0, 1]
        #expect(
            ClientAddress(bytes: Self.version6(network, 1))
                == ClientAddress(bytes: Self.version6(network, 2)))
        #expect(
            ClientAddress(bytes: Self.version6(network, 1))
                != ClientAddress(bytes: Self.version6([0x20, 1, 0xD, 0xB8, 0, 0, 0, 2], 1)))
    }

    @Test func `an IPv4-mapped IPv6 address equals its IPv4 address`() {
        let mapped: [UInt8] = Array(repeating: 0, count: 10) + [255, 255, 1, 2, 3, 4]
        #expect(ClientAddress(bytes: mapped) == ClientAddress(bytes: [1, 2, 3, 4]))
    }

    @Test(arguments: [0, 1, 3, 5, 15, 17])
    func `bytes of any other length are no address`(count: Int) {
        #expect(ClientAddress(bytes: Array(repeating: 1, count: count)) == nil)
    }
}
