internal import HTTPTypes
package import KedgeModel
internal import NIOCore

/// Front ends whose word counts about who the client is.
///
/// Anybody can send `X-Forwarded-For`. Its last entry was added by the peer; if that is one of these, it is the
/// client, or another one of these, and then the entry before that counts in the same way.
package struct TrustedProxies: Sendable {
    /// Addresses that have their first bits in common.
    private struct Network: Sendable {
        let bytes: [UInt8]
        let bitCount: Int

        /// - Parameter text: An address, or one with a number of bits, such as `10.0.0.0/8`.
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

    private let networks: [Network]

    /// Nobody's word counts.
    package static let none = TrustedProxies(networks: [])

    private init(networks: [Network]) { self.networks = networks }

    /// - Parameter text: Addresses and networks, by comma; nil for anything else.
    package init?(text: String) {
        var networks: [Network] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: true) {
            let trimmed = part.drop { $0 == " " }
            guard let network = Network(trimmed.prefix { $0 != " " }) else { return nil }
            networks.append(network)
        }
        self.networks = networks
    }

    /// Who the client is.
    ///
    /// - Parameters:
    ///   - peer: The address at the other end of the connection, as bytes; nil where there is none.
    ///   - forwarded: The values of `X-Forwarded-For`, in order.
    package func client(peer: [UInt8]?, forwarded: [String]) -> ClientAddress {
        guard var address = peer else { return .unknown }
        var entries = forwarded.flatMap { $0.split(separator: ",") }
        while isTrusted(address), let entry = entries.popLast() {
            // What is no address ends the chain: the proxy does not know better.
            guard let bytes = AddressBytes.parse(forwarded: entry) else { break }
            address = bytes
        }
        return ClientAddress(bytes: address) ?? .unknown
    }

    private func isTrusted(_ address: [UInt8]) -> Bool {
        networks.contains { $0.contains(address) }
    }
}

extension TrustedProxies {
    /// True when these fields name another client than the peer, whose word does not count.
    func ignores(_ headers: HTTPFields, peer: SocketAddress?) -> Bool {
        guard headers[.xForwardedFor] != nil, let bytes = peer.flatMap(AddressBytes.of) else {
            return false
        }
        return !isTrusted(bytes)
    }

    /// Who sends a request over a connection.
    func client(of head: HTTPRequest, peer: SocketAddress?) -> ClientAddress {
        client(headers: head.headerFields, peer: peer)
    }

    /// Who sends these fields over a connection.
    func client(headers: HTTPFields, peer: SocketAddress?) -> ClientAddress {
        guard let bytes = peer.flatMap(AddressBytes.of) else { return .unknown }
        // Most peers are no proxies, and their field is not worth reading.
        guard isTrusted(bytes) else { return ClientAddress(bytes: bytes) ?? .unknown }
        return client(peer: bytes, forwarded: headers[values: .xForwardedFor])
    }
}

/// IP addresses as their bytes in network order. One of IPv4 has four, however it was written.
enum AddressBytes {
    static func of(_ address: SocketAddress) -> [UInt8]? {
        // Where `struct sockaddr_in` and `struct sockaddr_in6` have the address, on every system.
        let place: Range<Int>
        switch address {
        case .v4: place = 4..<8
        case .v6: place = 8..<24
        default: return nil
        }
        return address.withSockAddr { pointer, byteCount in
            guard place.upperBound <= byteCount else { return nil }
            return unmapped(
                Array(UnsafeRawBufferPointer(start: pointer, count: byteCount)[place]))
        }
    }

    static func parse(_ text: String) -> [UInt8]? {
        // No address is longer, and none has a zone here.
        guard text.utf8.count <= 45, !text.contains("%") else { return nil }
        return (try? SocketAddress(ipAddress: text, port: 0)).flatMap(of)
    }

    /// - Parameter entry: One entry of `X-Forwarded-For`: an address, perhaps with a port.
    static func parse(forwarded entry: Substring) -> [UInt8]? {
        var text = entry.filter { $0 != " " && $0 != "\t" && $0 != "\"" }
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            text = String(text[text.index(after: text.startIndex)..<end])
        } else if text.count(where: { $0 == ":" }) == 1, let colon = text.firstIndex(of: ":") {
            text = String(text[..<colon])
        }
        return parse(text)
    }

    private static func unmapped(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.count == 16 else { return bytes }
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
        return isMapped ? Array(bytes[12...]) : bytes
    }
}
