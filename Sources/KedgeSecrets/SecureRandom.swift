/// Random bytes for secrets.
///
/// The generator is not a parameter, so that no seed of a test can make a secret of a service. The
/// system's generator is cryptographically secure; on Linux its bytes come from getrandom(2).
package enum SecureRandom {
    /// Returns random bytes.
    package static func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 7)
        while bytes.count < count {
            let word = UInt64.random(in: .min ... .max)
            for place in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * place))) }
        }
        return Array(bytes.prefix(count))
    }
}
