/// The network that a client is in, as far as shares go: an IPv4 address, or the first 64 bits of an IPv6
/// address, as whoever has one of those has all others beside it.
package struct ClientAddress: Hashable, Sendable {
    private enum Network: Hashable, Sendable {
        case unknown
        case version4(UInt32)
        case version6(UInt64)
    }

    private let network: Network

    /// A client that comes from no network, or from one that could not be learned.
    package static let unknown = ClientAddress(network: .unknown)

    private init(network: Network) { self.network = network }

    /// - Parameter bytes: Four or sixteen bytes in network order; nil for another number.
    package init?(bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        switch bytes.count {
        case 4:
            network = .version4(bytes.reduce(0) { $0 << 8 | UInt32($1) })
        case 16 where bytes[..<10].allSatisfy({ $0 == 0 }) && bytes[10] == 255 && bytes[11] == 255:
            // ::ffff:a.b.c.d, which is how a socket for both versions shows IPv4.
            network = .version4(bytes[12...].reduce(0) { $0 << 8 | UInt32($1) })
        case 16:
            network = .version6(bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) })
        default:
            return nil
        }
    }
}
