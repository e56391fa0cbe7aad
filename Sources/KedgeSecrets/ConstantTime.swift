internal import CCrypto

/// Comparisons whose time does not depend on where the values differ.
package enum ConstantTime {
    /// Whether both have the same bytes. The lengths are no secret.
    ///
    /// libcrypto compares, because a compiler may turn a loop of ours into one that stops early.
    package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return CRYPTO_memcmp(left, right, left.count) == 0
    }
}
