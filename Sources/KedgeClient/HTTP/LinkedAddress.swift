internal import KedgeTransport

/// The address that an answer names in its `Location` (RFC 3986 section 5), without its fragment.
package struct LinkedAddress: Sendable, Equatable {
    package let url: String
    /// Whether the address leads from an encrypted to an unencrypted connection. Nothing may be
    /// sent there.
    package let isDowngrade: Bool

    /// Resolves the address; nil without one, or for anything but http and https.
    ///
    /// - Parameter base: URL of the request.
    package init?(_ location: String?, from base: String) {
        guard let location, !location.isEmpty,
            let resolved = URLText.resolve(location, against: base)
        else { return nil }
        url = String(resolved.prefix { $0 != "#" })
        isDowngrade = URLText.isEncrypted(base) && !URLText.isEncrypted(url)
    }
}
