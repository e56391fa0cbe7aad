internal import HTTPTypes
package import KedgeModel
internal import NIOCore

/// Proxies whose `X-Forwarded-For` is trusted.
///
/// Any client can send the field. Its last entry was added by the peer, and counts only if the peer
/// is a trusted proxy. If that entry names a trusted proxy too, the entry before it counts in the
/// same way.
package struct TrustedProxies: Sendable {
    private let networks: [AddressNetwork]

    /// Whether no proxy is trusted.
    package var isEmpty: Bool { networks.isEmpty }

    /// Whether one of the networks has every IPv4 or every IPv6 address.
    var trustsAll: Bool { networks.contains { $0.bitCount == 0 } }

    /// Trusts no proxy.
    package static let none = TrustedProxies(networks: [])

    private init(networks: [AddressNetwork]) { self.networks = networks }

    /// Returns nil for invalid text.
    ///
    /// - Parameter text: Addresses and networks, separated by commas.
    package init?(text: String) {
        var networks: [AddressNetwork] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: true) {
            let trimmed = part.drop { $0 == " " }
            guard let network = AddressNetwork(trimmed.prefix { $0 != " " }) else { return nil }
            networks.append(network)
        }
        self.networks = networks
    }

    /// Returns the client's address.
    ///
    /// - Parameters:
    ///   - peer: The address at the other end of the connection, as bytes; nil when there is none.
    ///   - forwarded: The values of `X-Forwarded-For`, in order.
    package func client(peer: [UInt8]?, forwarded: [String]) -> ClientAddress {
        clientBytes(peer: peer, forwarded: forwarded).flatMap { ClientAddress(bytes: $0) }
            ?? .unknown
    }

    /// Returns the network of a client, for limits; nil for an address that many clients may share:
    /// that of a trusted proxy which names no client, and that of this machine.
    package func network(peer: [UInt8]?, forwarded: [String]) -> ClientAddress? {
        guard let address = clientBytes(peer: peer, forwarded: forwarded),
            !isTrusted(address), !AddressBytes.isLoopback(address)
        else { return nil }
        return ClientAddress(bytes: address)
    }

    private func clientBytes(peer: [UInt8]?, forwarded: [String]) -> [UInt8]? {
        guard var address = peer else { return nil }
        var entries = forwarded.flatMap { $0.split(separator: ",") }
        while isTrusted(address), let entry = entries.popLast() {
            // An entry that is not an address ends the chain, because the proxy does not know a
            // better one.
            guard let bytes = AddressBytes.parse(forwarded: entry) else { break }
            address = bytes
        }
        return address
    }

    private func isTrusted(_ address: [UInt8]) -> Bool {
        networks.contains { $0.contains(address) }
    }
}

extension TrustedProxies {
    /// Whether the peer is a trusted proxy.
    func isTrusted(_ peer: SocketAddress?) -> Bool {
        peer.flatMap(AddressBytes.of).map { isTrusted($0) } ?? false
    }

    /// The network of the client that sends these fields over a connection; nil for an address that
    /// many clients may share.
    func network(headers: HTTPFields, peer: SocketAddress?) -> ClientAddress? {
        network(peer: peer.flatMap(AddressBytes.of), forwarded: headers[values: .xForwardedFor])
    }

    /// Whether the fields name another client than the peer, which is not a trusted proxy.
    func ignores(_ headers: HTTPFields, peer: SocketAddress?) -> Bool {
        guard headers[.xForwardedFor] != nil, let bytes = peer.flatMap(AddressBytes.of) else {
            return false
        }
        return !isTrusted(bytes)
    }

    func client(of head: HTTPRequest, peer: SocketAddress?) -> ClientAddress {
        client(headers: head.headerFields, peer: peer)
    }

    /// The client that sends these fields over a connection.
    func client(headers: HTTPFields, peer: SocketAddress?) -> ClientAddress {
        clientBytes(headers: headers, peer: peer).flatMap { ClientAddress(bytes: $0) } ?? .unknown
    }

    /// The complete address of the client that sends these fields; nil when there is none.
    func clientBytes(headers: HTTPFields, peer: SocketAddress?) -> [UInt8]? {
        guard let bytes = peer.flatMap(AddressBytes.of) else { return nil }
        // Most peers are not proxies, so their field need not be read.
        guard isTrusted(bytes) else { return bytes }
        return clientBytes(peer: bytes, forwarded: headers[values: .xForwardedFor])
    }
}

/// IP addresses as bytes in network order. An IPv4 address has four, even if it is IPv6-mapped.
enum AddressBytes {
    static func of(_ address: SocketAddress) -> [UInt8]? {
        // The position of the address in `struct sockaddr_in` and `struct sockaddr_in6`, on every
        // system.
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

    static func isLoopback(_ address: [UInt8]) -> Bool {
        address.count == 4
            ? address[0] == 127 : address.dropLast().allSatisfy { $0 == 0 } && address.last == 1
    }

    static func parse(_ text: String) -> [UInt8]? {
        // No address is longer, and addresses with a zone are refused.
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
