/// The network address of a client.
///
/// An IPv6 address counts with its first 64 bits only, because a client usually has such a network
/// to itself. An IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) counts as the IPv4 address.
package struct ClientAddress: Hashable, Sendable, CustomStringConvertible {
    /// The IPv4 address, or the IPv6 network in canonical text (RFC 5952), such as `2001:db8::/64`.
    package let network: String

    package var description: String { network }

    /// A client without a network address, or with an unknown one.
    package static let unknown = ClientAddress(network: "unknown")

    private init(network: String) { self.network = network }

    /// - Parameter bytes: Four or sixteen bytes in network order; nil for any other count.
    package init?(bytes: some Sequence<UInt8>) {
        let bytes = bytes.map { UInt16($0) }
        switch bytes.count {
        case 4: network = bytes.map { "\($0)" }.joined(separator: ".")
        case 16:
            let groups = stride(from: 0, to: 16, by: 2).map { bytes[$0] << 8 | bytes[$0 + 1] }
            network = Self.network(of: groups)
        default: return nil
        }
    }

    /// Parses an address; nil for any other text.
    ///
    /// - Parameter text: An IPv4 or IPv6 address, with or without an interface name (`%eth0`).
    package init?(_ text: some StringProtocol) {
        let address = text.prefix { $0 != "%" }
        if let numbers = Self.version4(address) {
            network = numbers.map { "\($0)" }.joined(separator: ".")
        } else if let groups = Self.version6(address) {
            network = Self.network(of: groups)
        } else {
            return nil
        }
    }

    private static func version4(_ text: some StringProtocol) -> [UInt16]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { part -> UInt16? in
            guard let number = WireInteger.parse(part), number < 256 else { return nil }
            return UInt16(number)
        }
        return parts.count == 4 && numbers.count == 4 ? numbers : nil
    }

    /// The eight groups of an address (RFC 4291 section 2.2).
    private static func version6(_ text: some StringProtocol) -> [UInt16]? {
        guard let gap = text.firstRange(of: "::") else {
            let groups = groups(of: text, mayEndAsVersion4: true)
            return groups?.count == 8 ? groups : nil
        }
        guard let head = groups(of: text[..<gap.lowerBound], mayEndAsVersion4: false),
            let tail = groups(of: text[gap.upperBound...], mayEndAsVersion4: true),
            head.count + tail.count < 8
        else { return nil }
        return head + [UInt16](repeating: 0, count: 8 - head.count - tail.count) + tail
    }

    private static func groups(
        of text: some StringProtocol, mayEndAsVersion4: Bool
    ) -> [UInt16]? {
        guard !text.isEmpty else { return [] }
        var groups: [UInt16] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if mayEndAsVersion4, index == parts.count - 1, let numbers = version4(part) {
                groups += [numbers[0] << 8 | numbers[1], numbers[2] << 8 | numbers[3]]
            } else if (1...4).contains(part.utf8.count), part.utf8.allSatisfy(isHexadecimal),
                let group = UInt16(part, radix: 16)
            {
                groups.append(group)
            } else {
                return nil
            }
        }
        return groups
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    private static func network(of groups: [UInt16]) -> String {
        if groups[..<5].allSatisfy({ $0 == 0 }), groups[5] == 0xFFFF {
            return [groups[6] >> 8, groups[6] & 0xFF, groups[7] >> 8, groups[7] & 0xFF]
                .map { "\($0)" }.joined(separator: ".")
        }
        // The second half is zero, so the longest run of zeros extends to the end.
        var head = groups[..<4]
        while head.last == 0 { head.removeLast() }
        return head.map { String($0, radix: 16) }.joined(separator: ":") + "::/64"
    }
}
