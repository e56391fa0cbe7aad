/// A certificate with which a client identifies itself to one server (mutual TLS).
public struct ClientCertificate: Sendable, Hashable {
    /// PEM file of the certificate, with its chain.
    public var certificateFile: String
    /// PEM file of the private key; nil if the certificate's file has it.
    public var keyFile: String?

    /// Creates a certificate.
    public init(certificateFile: String, keyFile: String? = nil) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }
}
