/// The files of a certificate and its key, and the oldest version of TLS to accept.
package struct TLSSettings: Hashable, Sendable {
    /// Path of a PEM file: the certificate of the server, then those of its authorities.
    package var certificatePath: String
    /// Path of a PEM file with the private key of the first certificate.
    package var keyPath: String
    package var minimum: TLSMinimum

    package init(certificatePath: String, keyPath: String, minimum: TLSMinimum = .version12) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.minimum = minimum
    }
}

/// The oldest version of TLS that a server accepts. Versions before 1.2 are obsolete (RFC 8996).
package enum TLSMinimum: String, Sendable {
    case version12 = "1.2"
    case version13 = "1.3"
}
