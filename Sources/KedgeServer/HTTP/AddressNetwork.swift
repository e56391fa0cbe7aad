internal import KedgeModel

/// Addresses with a common prefix.
struct AddressNetwork: Sendable {
    let bytes: [UInt8]
    let bitCount: Int

    /// - Parameter text: An address, or a network such as `10.0.0.0/8`.
    init?(_ text: Substring) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let bytes = AddressBytes.parse(String(parts[0])) else { return nil }
        self.bytes = bytes
        guard parts.count == 2 else {
            bitCount = bytes.count * 8
            return
        }
        guard let value = WireInteger.parse(String(parts[1])), value <= bytes.count * 8 else {
            return nil
        }
        bitCount = Int(value)
    }

    func contains(_ other: [UInt8]) -> Bool {
        guard other.count == bytes.count else { return false }
        let whole = bitCount / 8
        guard bytes[..<whole] == other[..<whole] else { return false }
        let rest = bitCount % 8
        return rest == 0 || (bytes[whole] ^ other[whole]) >> (8 - rest) == 0
    }
}
